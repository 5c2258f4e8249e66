/*
 * Reading a recording.
 *
 * Nothing in it is believed: a frame is one if its header and its payload come to its
 * checksum, it has the next number, and what it says of a lane is possible.  What is behind the
 * last whole frame is the end, whatever it is: a recorder that was killed leaves such an end.
 * Files are read and not mapped, for who cuts a mapped one short ends whoever looks.
 *
 * Of one that grows nothing is read that is not settled (struct log_tail): what is missing
 * there is not an end, it comes.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/outside/bytes/crc32c.h"
#include "engine/outside/log/frames.h"
#include "engine/outside/monitor/say.h"

#define READ_BYTES	(1u << 20)	/* at a time */

_Static_assert(READ_BYTES % CELL_SIZE == 0, "frames begin at cells");

const char frames_endless[] = "its end is missing: its recorder was killed, or still writes";

uint32_t frame_crc(const struct log_frame *frame, const void *payload)
{
	size_t from = offsetof(struct log_frame, size);
	uint32_t crc = crc32c(0, (const uint8_t *)frame + from, sizeof(*frame) - from);

	return crc32c(crc, payload, frame->size);
}

uint32_t segment_crc(const struct log_segment *s)
{
	return crc32c(0, s, offsetof(struct log_segment, crc));
}

__attribute__((format(printf, 2, 3)))
static bool torn(struct frames *f, const char *fmt, ...)
{
	va_list ap;

	f->over = f->torn = true;
	va_start(ap, fmt);
	vsnprintf(f->why, sizeof(f->why), fmt, ap);
	va_end(ap);
	return false;
}

/* --- bytes of a segment -------------------------------------------------------------- */

/* How much of this segment may be read. */
static void growth_look(struct frames *f)
{
	bool over = f->tail && CONSUME(tail_over, &f->tail->over);
	uint64_t settled = f->tail ? CONSUME(tail_settled, &f->tail->settled) : 0;

	f->most = UINT64_MAX;
	if (f->tail && !over && tail_segment(settled) <= f->segment)
		f->most = tail_segment(settled) < f->segment ? 0 : tail_offset(settled);
}

static bool is_growing(const struct frames *f)
{
	return f->most != UINT64_MAX;
}

static ssize_t bytes_read(struct frames *f)
{
	uint64_t from = f->offset + f->have, room = f->room - f->have;
	uint64_t left = f->most > from ? f->most - from : 0;

	return pread(f->fd, f->bytes + f->have, left < room ? left : room, (off_t)from);
}

/* At least so many bytes from where we stand; false: the file has no more. */
static bool bytes_have(struct frames *f, size_t want)
{
	MUST(f->at <= f->have && want <= READ_BYTES + CELL_SIZE + LOG_PAYLOAD_MAX);
	if (f->have - f->at >= want)
		return true;
	if (f->have > f->at)
		memmove(f->bytes, f->bytes + f->at, f->have - f->at);
	f->offset += f->at;
	f->have -= f->at;
	f->at = 0;
	if (want + READ_BYTES > f->room) {
		uint8_t *more = realloc(f->bytes, want + READ_BYTES);

		MUST(more);
		f->bytes = more;
		f->room = want + READ_BYTES;
	}
	while (f->have < want) {
		ssize_t n = bytes_read(f);

		if (n <= 0)
			return false;
		f->have += (size_t)n;
	}
	return true;
}

/* --- segments ------------------------------------------------------------------------ */

/* A regular file, whose ever it is; nothing waits for it. */
static int segment_open(const struct frames *f, uint32_t number)
{
	char name[32];
	struct stat is;
	int fd;

	snprintf(name, sizeof(name), LOG_NAME, number);
	fd = openat(f->folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &is) || !S_ISREG(is.st_mode)) {
		close(fd);
		return -EINVAL;
	}
	return fd;
}

/* What is wrong with how it begins; NULL: nothing. */
static const char *segment_wrong(const struct frames *f, const struct log_segment *s)
{
	static char text[FRAMES_WHY];

	if (s->magic != LOG_MAGIC)
		return "not a recording";
	if (s->version != LOG_VERSION || s->event_version != EVENT_VERSION ||
	    s->ring_version != RING_VERSION) {
		snprintf(text, sizeof(text), "another version of mve wrote it (format %u.%u.%u, "
			 "this one reads %d.%d.%d)", s->version, s->event_version,
			 s->ring_version, LOG_VERSION, EVENT_VERSION, RING_VERSION);
		return text;
	}
	if (s->crc != segment_crc(s) || s->number != f->segment)
		return "its beginning is damaged";
	if (f->segment > f->dropped && memcmp(s->recording, f->recording, sizeof(f->recording)))
		return "it is of another recording";
	return f->segment > f->dropped && s->first != f->number ? "what is before it is missing"
								: NULL;
}

/* False: there is none, or `why`. */
static bool segment_begin(struct frames *f)
{
	int fd = segment_open(f, f->segment);
	const struct log_segment *s;
	const char *wrong;

	if (fd == -ENOENT && f->segment > f->dropped) {
		f->over = true;
		return false;
	}
	if (fd < 0)
		return torn(f, "segment " LOG_NAME ": %s", f->segment, strerror(-fd));
	if (f->fd >= 0)
		close(f->fd);
	f->fd = fd;
	f->offset = f->at = f->have = 0;
	f->bale_have = f->bale_at = 0;
	if (f->unbaler)
		unbaler_segment(f->unbaler);
	if (!bytes_have(f, sizeof(*s)))
		return torn(f, "segment " LOG_NAME ": it is cut short", f->segment);
	s = (const struct log_segment *)f->bytes;
	wrong = segment_wrong(f, s);
	if (wrong)
		return torn(f, "segment " LOG_NAME ": %s", f->segment, wrong);
	if (f->segment == f->dropped) {
		memcpy(f->recording, s->recording, sizeof(f->recording));
		f->number = f->begins = s->first;
		f->began_ns = s->time_ns;
	}
	f->gone = s->dropped;
	f->first = f->number;
	f->at = sizeof(*s);
	f->total += sizeof(*s);
	return true;
}

int frames_open_tail(struct frames *f, int folder, const struct log_tail *tail)
{
	MUST(folder >= 0 && tail);
	*f = (struct frames){ .fd = -1, .folder = folder, .tail = tail };
	growth_look(f);
	return segment_begin(f) ? 0 : EXIT_NO;
}

/* The lowest number of a segment that is there; 0: there is none. */
static uint32_t oldest_find(int folder)
{
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	uint32_t oldest = UINT32_MAX, n;
	char name[32];

	for (struct dirent *d; dir && (d = readdir(dir));) {
		if (sscanf(d->d_name, "%u", &n) != 1 || n >= oldest)
			continue;
		snprintf(name, sizeof(name), LOG_NAME, n);
		if (!strcmp(name, d->d_name))
			oldest = n;
	}
	if (dir)
		closedir(dir);
	else if (fd >= 0)
		close(fd);
	return oldest == UINT32_MAX ? 0 : oldest;
}

int frames_open(struct frames *f, const char *path)
{
	*f = (struct frames){ .fd = -1, .most = UINT64_MAX };
	f->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (f->folder < 0) {
		torn(f, "%s", strerror(errno));
		return EXIT_USE;
	}
	f->segment = f->dropped = f->missing_to = oldest_find(f->folder);
	return segment_begin(f) ? 0 : EXIT_NO;
}

int frames_open_at(struct frames *f, const char *path, uint32_t segment)
{
	int fd;

	*f = (struct frames){ .fd = -1, .most = UINT64_MAX, .segment = segment,
			      .dropped = segment };
	f->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fd = f->folder < 0 ? -errno : segment_open(f, segment);
	if (fd < 0) {
		frames_close(f);
		return EXIT_USE;
	}
	close(fd);
	return segment_begin(f) ? 0 : EXIT_NO;
}

void frames_close(struct frames *f)
{
	if (f->fd >= 0)
		close(f->fd);
	if (f->folder >= 0)
		close(f->folder);
	free(f->bytes);
	unbaler_free(f->unbaler);
	*f = (struct frames){ .folder = -1, .fd = -1, .over = true };
}

/* --- frames -------------------------------------------------------------------------- */

/* Cells of a lane lie in one chunk, and leave its last one to the turn. */
static bool frame_possible(const struct log_frame *h)
{
	uint64_t room = CHUNK_CELLS - 1 - h->at % CHUNK_CELLS;

	switch (h->kind) {
	case LOG_HEAD:
		return h->size >= sizeof(struct log_head) && h->size <= LOG_PAYLOAD_MAX;
	case LOG_CELLS:
		return h->size && h->size % CELL_SIZE == 0 && h->size / CELL_SIZE <= room &&
		       h->lane < LANES && h->life && h->at < 1ull << 48;
	case LOG_OPEN:
		return !h->size && h->lane < LANES && h->life && h->at < 1ull << 48;
	case LOG_GIVES:
	case LOG_CLOSED:
		return !h->size && h->lane < LANES && h->life && h->at < 1ull << 48;
	case LOG_END:
		return h->size <= FRAMES_WHY;
	case LOG_BALE:
		return h->size <= LOG_BALED_MAX && h->at >= sizeof(*h) && h->at <= LOG_BALE_MAX;
	default:
		return false;
	}
}

static bool header_is(const struct frames *f, const struct log_frame *h)
{
	return h->magic == LOG_FRAME && h->number == f->number && frame_possible(h);
}

/* The frame where we stand is not whole: it is to come, or the end, unless there is more. */
static void frames_cut(struct frames *f, const char *what)
{
	int next = segment_open(f, f->segment + 1);

	torn(f, "segment " LOG_NAME ", byte %lu: %s%s", f->segment,
	     (unsigned long)(f->offset + f->at), what,
	     next >= 0 ? "; there are segments behind it" : "");
	if (next >= 0)
		close(next);
}

static const struct log_frame *frame_short(struct frames *f)
{
	if (!is_growing(f))
		frames_cut(f, "a frame is cut short");
	return NULL;
}

static const struct log_frame *frame_look(struct frames *f)
{
	const struct log_frame *h;
	uint64_t size;

	if (!bytes_have(f, sizeof(*h)))
		return frame_short(f);
	h = (const struct log_frame *)(f->bytes + f->at);
	if (!header_is(f, h)) {
		frames_cut(f, "no frame");
		return NULL;
	}
	size = log_frame_size(h->size);
	if (!bytes_have(f, size))
		return frame_short(f);
	h = (const struct log_frame *)(f->bytes + f->at);
	if (h->crc != frame_crc(h, h + 1)) {
		frames_cut(f, "a frame is damaged");
		return NULL;
	}
	f->at += size;
	f->total += size;
	return h;
}

/* --- bales --------------------------------------------------------------------------- */

static void bale_wrong(struct frames *f, const char *what)
{
	torn(f, "segment " LOG_NAME ", before byte %lu: %s", f->segment,
	     (unsigned long)(f->offset + f->at), what);
}

static void bale_begin(struct frames *f, const struct log_frame *around)
{
	if (!f->unbaler)
		f->unbaler = unbaler_new();
	f->bale = bale_open(f->unbaler, around + 1, around->size, around->at);
	f->bale_at = 0;
	f->bale_have = f->bale ? around->at : 0;
	if (!f->bale)
		bale_wrong(f, "a bale cannot be opened");
}

/* The next of those that were compressed together. */
static const struct log_frame *bale_look(struct frames *f)
{
	const struct log_frame *h = (const struct log_frame *)(f->bale + f->bale_at);
	size_t left = f->bale_have - f->bale_at;

	MUST(left && left <= LOG_BALE_MAX);
	if (left < sizeof(*h) || !header_is(f, h) || h->kind == LOG_BALE ||
	    left < log_frame_size(h->size) || h->crc != frame_crc(h, h + 1)) {
		bale_wrong(f, "what is in a bale is no frame");
		return NULL;
	}
	f->bale_at += log_frame_size(h->size);
	return h;
}

/* The next of a bale, or of the file: it may be a bale. */
static const struct log_frame *frame_any(struct frames *f)
{
	while (!f->over && f->bale_at == f->bale_have && !bytes_have(f, 1)) {
		if (is_growing(f))
			return NULL;
		f->segment++;
		growth_look(f);
		if (!segment_begin(f))
			return NULL;
	}
	if (f->over)
		return NULL;
	return f->bale_at < f->bale_have ? bale_look(f) : frame_look(f);
}

static const struct log_frame *frame_next(struct frames *f)
{
	const struct log_frame *h;

	growth_look(f);
	while ((h = frame_any(f)) && h->kind == LOG_BALE)
		bale_begin(f, h);
	f->number += h != NULL;
	return h;
}

/* Each segment begins with the head, for who begins there. */
const struct log_frame *frames_next(struct frames *f)
{
	const struct log_frame *h;

	do
		h = frame_next(f);
	while (h && h->kind == LOG_HEAD && f->begun);
	f->begun |= h != NULL;
	if (h)
		f->ended = h->kind == LOG_END;
	f->over |= h && f->tail && h->kind == LOG_END;
	return h;
}

void frames_copy(const struct frames *f, struct frames *copy)
{
	*copy = (struct frames){ .fd = -1, .folder = dup(f->folder), .segment = f->segment,
				 .number = f->first, .over = f->over,
				 .tail = f->tail, .dropped = f->dropped, .begun = true };
	growth_look(copy);
	memcpy(copy->recording, f->recording, sizeof(copy->recording));
	MUST(copy->folder >= 0);
	if (copy->over || !segment_begin(copy))
		return;
	while (copy->number < f->number && frame_next(copy))
		;
}

/* Only the last segment knows how many were dropped. */
uint32_t frames_lost(const struct frames *f)
{
	return f->ended && !f->torn && f->missing_to > f->gone ? f->missing_to - f->gone : 0;
}

const char *frames_wrong(const struct frames *f)
{
	static char text[FRAMES_WHY];

	if (f->torn)
		return f->why;
	if (!f->ended)
		return frames_endless;
	snprintf(text, sizeof(text), "what is before segment " LOG_NAME " is missing",
		 f->missing_to);
	return frames_lost(f) ? text : NULL;
}

/* --- the head ------------------------------------------------------------------------ */

/* The next of the words; NULL: there is none. */
static char *word_take(char **at, const char *end)
{
	char *word = *at;
	char *stop = word < end ? memchr(word, 0, (size_t)(end - word)) : NULL;

	if (stop)
		*at = stop + 1;
	return stop ? word : NULL;
}

static char **words_take(char **at, const char *end, uint32_t n)
{
	char **list = n <= LOG_WORDS_MAX ? calloc((size_t)n + 1, sizeof(*list)) : NULL;

	for (uint32_t i = 0; list && i < n; i++) {
		list[i] = word_take(at, end);
		if (!list[i]) {
			free(list);
			return NULL;
		}
	}
	return list;
}

bool program_read(const struct log_frame *frame, struct program *p)
{
	char *at = (char *)(frame + 1) + sizeof(p->head), *end;

	*p = (struct program){ 0 };
	if (frame->kind != LOG_HEAD || frame->size < sizeof(p->head))
		return false;
	memcpy(&p->head, frame + 1, sizeof(p->head));
	if (p->head.words != frame->size - sizeof(p->head) || !p->head.argc ||
	    p->head.build_id_size > LOG_BUILD_ID || !p->head.chunks ||
	    p->head.chunks > CHUNKS_MAX || p->head.away >= p->head.chunks ||
	    p->head.sections < 2 || p->head.sections > VERSIONS)
		return false;
	end = at + p->head.words;
	p->path = word_take(&at, end);
	p->folder = word_take(&at, end);
	p->kernel = word_take(&at, end);
	if (!p->path || !p->folder || !p->kernel)
		return false;
	p->argv = words_take(&at, end, p->head.argc);
	p->env = p->argv ? words_take(&at, end, p->head.envc) : NULL;
	if (!p->env)
		free(p->argv);
	return p->env;
}
