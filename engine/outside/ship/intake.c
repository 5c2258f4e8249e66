/*
 * What comes is taken in the order of its places: of one that came before the rest is passed over,
 * for a sender that was cut off begins anew where the last acknowledgement was, and may cut
 * otherwise.  The first message says which recording it is; one of another is refused.  Nothing is
 * settled that is not in the file.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/outside/ship/intake.h"
#include "engine/outside/ship/message.h"

void intake_begin(struct intake *in, int folder, struct log_tail *tail)
{
	MUST(folder >= 0 && tail);
	*in = (struct intake){ .folder = folder, .fd = -1, .tail = tail };
}

void intake_end(struct intake *in)
{
	if (in->fd >= 0)
		close(in->fd);
	in->fd = -1;
	PUBLISH(tail_over, &in->tail->over, 1);
}

__attribute__((format(printf, 2, 3)))
static enum taken wrong(struct intake *in, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(in->why, sizeof(in->why), fmt, ap);
	va_end(ap);
	return INTAKE_WRONG;
}

static enum taken recording_check(struct intake *in, const struct ship_message *m)
{
	if (!in->begun) {
		if (m->bytes || m->place)
			return wrong(in, "the recording's beginning is no longer in the stream");
		memcpy(in->recording, m->recording, sizeof(in->recording));
		in->begun = true;
	}
	if (!memcmp(in->recording, m->recording, sizeof(in->recording)))
		return INTAKE_TAKEN;
	return wrong(in, m->bytes ? "a message of another recording is on the subject" :
		     "another recording has begun on the subject, and this one has no end");
}

static int segment_make(struct intake *in, uint32_t segment)
{
	char name[32];

	if (in->fd >= 0)
		close(in->fd);
	snprintf(name, sizeof(name), LOG_NAME, segment);
	in->fd = openat(in->folder, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	return in->fd < 0 ? -errno : 0;
}

/* Whether the message's byte `skip` is the next one; a segment begins with its header. */
static bool goes_on(const struct intake *in, const struct ship_message *m, uint32_t skip)
{
	uint64_t offset = (uint64_t)tail_offset(m->place) + skip;

	if (offset + m->size - skip > INTAKE_SEGMENT_MAX)
		return false;
	if (offset)
		return tail_place(tail_segment(m->place), (uint32_t)offset) == in->place;
	return m->size >= sizeof(struct log_segment) &&
	       tail_segment(m->place) == (in->bytes ? tail_segment(in->place) + 1 : 0);
}

static int bytes_put(int fd, const uint8_t *bytes, uint32_t n, uint32_t offset)
{
	for (ssize_t done; n; bytes += done, n -= (uint32_t)done, offset += (uint32_t)done) {
		done = pwrite(fd, bytes, n, offset);
		if (done < 0 && errno == EINTR)
			done = 0;
		if (done < 0)
			return -errno;
	}
	return 0;
}

static enum taken bytes_take(struct intake *in, const struct ship_message *m)
{
	uint32_t skip = (uint32_t)(in->bytes - m->bytes), n = m->size - skip;
	uint32_t offset = tail_offset(m->place) + skip;
	int result;

	MUST(m->bytes <= in->bytes && skip < m->size);
	if (!goes_on(in, m, skip))
		return wrong(in, "a message does not go on where the last one ended");
	result = offset ? 0 : segment_make(in, tail_segment(m->place));
	if (!result)
		result = bytes_put(in->fd, (const uint8_t *)(m + 1) + skip, n, offset);
	if (result)
		return wrong(in, "cannot write: %s", strerror(-result));
	in->bytes += n;
	in->place = tail_place(tail_segment(m->place), offset + n);
	PUBLISH(tail_settled, &in->tail->settled, in->place);
	return INTAKE_TAKEN;
}

enum taken intake_take(struct intake *in, const void *bytes, size_t len)
{
	const char *why = message_wrong(bytes, len);
	const struct ship_message *m = bytes;

	if (why)
		return wrong(in, "%s", why);
	if (recording_check(in, m) == INTAKE_WRONG)
		return INTAKE_WRONG;
	if (m->bytes > in->bytes)
		return INTAKE_AHEAD;
	if (m->flags & SHIP_OVER)
		return m->bytes == in->bytes && in->bytes && !m->size ? INTAKE_OVER : INTAKE_AGAIN;
	return m->size > in->bytes - m->bytes ? bytes_take(in, m) : INTAKE_AGAIN;
}
