/*
 * Writing a recording.  A batch is one write of headers and payloads where they lie: what is
 * in the ring goes from there to the file, through no buffer of ours.  Two batches take turns,
 * so that the next is gathered while one is written.  Where io_uring is forbidden the same
 * writes are waited for.  With a level of zstd a batch becomes a bale first, unless there is no
 * time for that.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/outside/foam/foam.h"
#include "engine/outside/kernel/folder.h"
#include "engine/outside/log/frames.h"
#include "engine/outside/log/writer.h"

#define SEGMENT_BYTES	(64ull << 20)
#define SEGMENT_PART	8		/* of what is kept, at most, and the last for the rest */
#define NEXT_MOST	LOG_BALE_MAX	/* of a batch, and a frame or two beside it */
#define KEPT_MOST	2		/* times what is to be kept: while an image is awaited */

_Static_assert(RECORD_LEAST / SEGMENT_PART + NEXT_MOST < RECORD_LEAST / 2, "some are kept");
_Static_assert(BATCH_FRAMES * (sizeof(struct log_frame) + CHUNK_SIZE) < NEXT_MOST, "a bale");

/* --- segments ------------------------------------------------------------------------ */

static uint64_t day_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static int segment_make(struct log_writer *w)
{
	struct log_segment s = { .magic = LOG_MAGIC, .version = LOG_VERSION,
				 .event_version = EVENT_VERSION, .ring_version = RING_VERSION,
				 .number = w->segment, .first = w->number,
				 .time_ns = day_ns(), .dropped = w->dropped };
	char name[32];
	ssize_t n;

	memcpy(s.recording, w->recording, sizeof(s.recording));
	s.crc = segment_crc(&s);
	snprintf(name, sizeof(name), LOG_NAME, w->segment);
	w->fd = openat(w->folder, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (w->fd < 0)
		return -errno;
	n = pwrite(w->fd, &s, sizeof(s), 0);
	w->offset = sizeof(s);
	w->segment_ns = s.time_ns;
	if (w->baler)
		baler_segment(w->baler);
	return n == sizeof(s) ? 0 : n < 0 ? -errno : -ENOSPC;
}

/* A folder of ours, that nobody else may look into; it is made in one that is there. */
static int folder_take(const char *path)
{
	char above[PATH_MAX], last[PATH_MAX], *name;
	int in, folder;

	if (snprintf(above, sizeof(above), "%s", path) >= (int)sizeof(above))
		return -ENAMETOOLONG;
	strcpy(last, above);
	name = basename(last);
	if (!strcmp(name, ".") || !strcmp(name, "..") || strchr(name, '/'))
		return -EINVAL;
	in = open(dirname(above), O_PATH | O_DIRECTORY | O_CLOEXEC);
	folder = in < 0 ? -errno : folder_open(in, name, FOLDER_MAKE | FOLDER_CLOSED);
	if (in >= 0)
		close(in);
	return folder;
}

void log_writer_drop(struct log_writer *w)
{
	char name[32];

	if (w->fd >= 0) {	/* it is ours, and nothing is in it */
		snprintf(name, sizeof(name), LOG_NAME, w->segment);
		unlinkat(w->folder, name, 0);
		close(w->fd);
	}
	close(w->folder);
	w->fd = w->folder = -1;
}

int log_writer_open(struct log_writer *w, const char *path)
{
	int result;

	*w = (struct log_writer){ .fd = -1, .segment_bytes = SEGMENT_BYTES };
	w->folder = folder_take(path);
	if (w->folder < 0)
		return w->folder;
	if (getrandom(w->recording, sizeof(w->recording), 0) != sizeof(w->recording))
		return -EIO;
	result = segment_make(w);
	if (!result)
		return 0;
	log_writer_drop(w);
	return result;
}

/* Small enough that some of them are kept. */
static void segment_size(struct log_writer *w)
{
	uint64_t most = w->bounds.bytes / SEGMENT_PART;

	if (most && w->segment_bytes > most)
		w->segment_bytes = most;
}

void log_writer_begin(struct log_writer *w, int level, const struct record_bounds *bounds)
{
	w->bounds = *bounds;
	w->began_ns = w->segment_ns;
	segment_size(w);
	w->uring = !io_uring_queue_init(4, &w->ring, 0);
	w->baler = level ? baler_new(level) : NULL;
}

bool log_writer_full(const struct log_writer *w)
{
	bool old = w->bounds.last && w->bounds.age_ns &&
		   day_ns() - w->segment_ns >= w->bounds.age_ns / SEGMENT_PART;

	return old || w->offset >= w->segment_bytes;
}

/* What a replay needs is kept, and no image has come in time. */
static const char *kept_bound(const struct log_writer *w)
{
	uint64_t most = KEPT_MOST * w->bounds.bytes;

	return w->bounds.images && most && w->kept_bytes + w->offset + NEXT_MOST > most ?
	       "twice --max-size, and no image in time" : NULL;
}

const char *log_writer_bound(const struct log_writer *w)
{
	uint64_t bytes = w->before + w->offset + NEXT_MOST;

	if (w->bounds.last)
		return kept_bound(w);
	if (w->bounds.bytes && bytes > w->bounds.bytes)
		return "--max-size";
	return w->bounds.age_ns && day_ns() - w->began_ns > w->bounds.age_ns ? "--max-age" : NULL;
}

/* It is written: a later one, for it gets its name when it is whole. */
static bool image_is(const struct log_writer *w, uint32_t image)
{
	char name[32];

	if (!image)
		return false;
	foam_name(name, image - 1, 0);
	return !faccessat(w->folder, name, F_OK, 0);
}

/* A replay can begin behind the oldest. */
static bool begins_later(const struct log_writer *w)
{
	bool any = !w->bounds.images;

	for (uint32_t i = 1; i < w->kept_count && !any; i++)
		any = image_is(w, w->kept[i].image);
	return any;
}

/* The oldest that is kept is not to be, any more: another is to come. */
static bool oldest_goes(const struct log_writer *w)
{
	uint64_t bytes = w->kept_bytes + w->segment_bytes + NEXT_MOST;

	return w->bounds.last && w->kept_count && begins_later(w) &&
	       ((w->bounds.bytes && bytes > w->bounds.bytes) ||
		(w->bounds.age_ns && day_ns() - w->kept[0].ended_ns > w->bounds.age_ns));
}

/* It goes with its segment; one that is still being written will be there later. */
static void image_drop(const struct log_writer *w)
{
	if (w->image_gone)
		foam_unlink(w->folder, w->image_gone - 1, false);
}

static int oldest_drop(struct log_writer *w)
{
	char name[32];

	snprintf(name, sizeof(name), LOG_NAME, w->dropped);
	if (unlinkat(w->folder, name, 0) && errno != ENOENT)
		return -errno;
	w->image_gone = w->kept[0].image ? w->kept[0].image : w->image_gone;
	image_drop(w);
	w->dropped++;
	w->kept_bytes -= w->kept[0].bytes;
	memmove(w->kept, w->kept + 1, --w->kept_count * sizeof(*w->kept));
	return 0;
}

static void segment_keep(struct log_writer *w)
{
	w->kept = realloc(w->kept, (w->kept_count + 1) * sizeof(*w->kept));
	MUST(w->kept);
	w->kept[w->kept_count++] = (struct segment_kept){ w->offset, day_ns(), w->image };
	w->kept_bytes += w->offset;
}

int log_writer_turn(struct log_writer *w)
{
	int result = 0;

	MUST(w->fd >= 0);
	close(w->fd);
	w->before += w->offset;
	segment_keep(w);
	w->image = 0;
	image_drop(w);
	while (!result && oldest_goes(w))
		result = oldest_drop(w);
	w->segment++;
	return result ? result : segment_make(w);
}

/* A segment that is new, too. */
int log_writer_sync(struct log_writer *w)
{
	MUST(w->fd >= 0);
	if (!w->dirty)
		return 0;
	w->dirty = false;
	return fdatasync(w->fd) || fsync(w->folder) ? -errno : 0;
}

int log_writer_close(struct log_writer *w)
{
	int result;

	w->dirty = true;
	result = log_writer_sync(w);
	image_drop(w);
	close(w->fd);
	close(w->folder);
	baler_free(w->baler);
	free(w->kept);
	if (w->uring)
		io_uring_queue_exit(&w->ring);
	if (w->tail)
		PUBLISH(tail_over, &w->tail->over, 1);
	return result;
}

/* --- batches ------------------------------------------------------------------------- */

void batch_empty(struct batch *b)
{
	MUST(!b->under_way);
	b->frames = b->parts = 0;
	b->bytes = 0;
}

bool batch_full(const struct log_writer *w, const struct batch *b)
{
	return b->frames == BATCH_FRAMES ||
	       (w->baler && !w->hurry && b->bytes >= baler_most(w->baler));
}

static void part_add(struct batch *b, const void *at, size_t len)
{
	MUST(b->parts < BATCH_FRAMES * 3);
	b->part[b->parts++] = (struct iovec){ (void *)at, len };
	b->bytes += len;
}

static void payload_add(struct batch *b, const void *payload, uint32_t size)
{
	static const uint8_t zeros[CELL_SIZE];

	if (size)
		part_add(b, payload, size);
	if (size % CELL_SIZE)
		part_add(b, zeros, CELL_SIZE - size % CELL_SIZE);
}

struct log_frame *batch_add(struct log_writer *w, struct batch *b, enum log_kind kind,
			    const void *payload, uint32_t size)
{
	struct log_frame *f = &b->frame[b->frames++];
	MUST(b->frames <= BATCH_FRAMES && !b->under_way);
	*f = (struct log_frame){ .magic = LOG_FRAME, .size = size, .kind = kind,
				 .number = w->number++, .time_ns = day_ns() };
	part_add(b, f, sizeof(*f));
	payload_add(b, payload, size);
	return f;
}

void batch_seal(struct log_frame *frame, const void *payload)
{
	frame->crc = frame_crc(frame, payload);
}

/* What a write has left, in its own time. */
static int rest_write(const struct log_writer *w, struct batch *b, size_t done)
{
	struct iovec *at = b->part;
	unsigned left = b->parts;

	while (done < b->bytes) {
		size_t skip = done;
		ssize_t n;

		for (at = b->part, left = b->parts; skip >= at->iov_len; at++, left--)
			skip -= at->iov_len;
		n = skip ? pwrite(w->fd, (uint8_t *)at->iov_base + skip, at->iov_len - skip,
				  (off_t)(b->offset + done))
			 : pwritev(w->fd, at, (int)left, (off_t)(b->offset + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		done += (size_t)n;
	}
	return 0;
}

/* What is to be written is a bale of it, if that can be had. */
static void batch_bale(struct log_writer *w, struct batch *b)
{
	uint32_t size;

	if (!b->bale)
		b->bale = malloc(baler_room());
	size = b->bale ? bale_make(w->baler, b->part, b->parts, b->bale) : 0;
	if (!size)
		return;
	b->around = (struct log_frame){ .magic = LOG_FRAME, .size = size, .kind = LOG_BALE,
					.number = b->frame[0].number,
					.time_ns = b->frame[0].time_ns, .at = b->bytes };
	batch_seal(&b->around, b->bale);
	b->parts = 0;
	b->bytes = 0;
	part_add(b, &b->around, sizeof(b->around));
	payload_add(b, b->bale, size);
}

void batch_write(struct log_writer *w, struct batch *b)
{
	struct io_uring_sqe *sqe = w->uring ? io_uring_get_sqe(&w->ring) : NULL;

	MUST(!b->under_way && b->frames);
	b->plain = b->bytes;
	if (w->baler && !w->hurry)
		batch_bale(w, b);
	b->offset = w->offset;
	b->segment = w->segment;
	w->offset += b->bytes;
	b->under_way = w->dirty = true;
	b->error = 0;
	if (sqe) {
		io_uring_prep_writev(sqe, w->fd, b->part, b->parts, b->offset);
		io_uring_sqe_set_data(sqe, b);
		if (io_uring_submit(&w->ring) == 1)
			return;
		w->uring = false;
	}
	b->error = rest_write(w, b, 0);
	b->under_way = false;
}

/* Whichever batch is done first. */
static bool one_done(struct log_writer *w)
{
	struct io_uring_cqe *cqe;
	struct batch *b;
	int result = io_uring_wait_cqe(&w->ring, &cqe);

	if (result == -EINTR)
		return true;
	if (result)
		return false;
	b = io_uring_cqe_get_data(cqe);
	MUST(b && b->under_way);
	b->error = cqe->res < 0 && cqe->res != -EAGAIN && cqe->res != -EINTR ? cqe->res :
		   rest_write(w, b, cqe->res > 0 ? (size_t)cqe->res : 0);
	b->under_way = false;
	io_uring_cqe_seen(&w->ring, cqe);
	return true;
}

void batch_wait(struct log_writer *w, struct batch *b)
{
	while (b->under_way)
		if (!one_done(w)) {
			b->error = -EIO;
			b->under_way = false;
		}
}

void batch_settle(struct log_writer *w, const struct batch *b)
{
	uint64_t end = b->offset + b->bytes;

	MUST(!b->under_way && end <= UINT32_MAX);
	if (w->written) {
		w->written->bytes = w->kept_bytes + end;
		w->written->frames += b->plain;
		w->written->segments = w->kept_count + 1;
		w->written->dropped = w->dropped;
	}
	if (!w->tail)
		return;
	__atomic_store_n(&w->tail->written, w->before + w->offset, __ATOMIC_RELAXED);
	PUBLISH(tail_settled, &w->tail->settled, tail_place(b->segment, (uint32_t)end));
}
