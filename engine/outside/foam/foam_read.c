/*
 * Reading an image.  Nothing in it is believed before all of it was looked at: lengths,
 * checksums, and that what it says fits together.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/outside/bytes/crc32c.h"
#include "engine/outside/foam/foam.h"
#include "engine/outside/kernel/folder.h"
#include "engine/outside/start/image.h"

#define PAGE		4096ull
#define TOP		(1ull << 47)

uint32_t foam_inside(void)
{
	const struct inside_image *im = inside_image();

	return crc32c(0, im->bytes, im->file_len);
}

uint32_t foam_run_crc(const struct foam_run *run, const void *bytes)
{
	uint32_t crc = crc32c(0, run, offsetof(struct foam_run, crc));

	return run->len ? crc32c(crc, bytes, run->len) : crc;
}

uint32_t foam_file_crc(int fd, uint64_t offset, uint64_t len)
{
	static uint8_t bytes[FOAM_RUN];
	uint32_t crc = 0;

	while (len) {
		size_t want = len < sizeof(bytes) ? (size_t)len : sizeof(bytes);
		ssize_t n = pread(fd, bytes, want, (off_t)offset);

		if (n <= 0)
			break;
		crc = crc32c(crc, bytes, (size_t)n);
		offset += (uint64_t)n;
		len -= (uint64_t)n;
	}
	return crc;
}

uint64_t foam_runs_at(const struct foam_head *h)
{
	return sizeof(*h) + h->maps * sizeof(struct foam_map) +
	       h->lanes * sizeof(struct foam_lane) + h->programs * sizeof(struct image) +
	       h->ended * sizeof(struct foam_ended);
}

__attribute__((format(printf, 2, 3)))
static bool wrong(struct foam *f, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(f->why, sizeof(f->why), fmt, ap);
	va_end(ap);
	return false;
}

static bool bytes_at(const struct foam *f, uint64_t at, void *to, size_t len)
{
	uint8_t *bytes = to;

	while (len) {
		ssize_t n = pread(f->fd, bytes, len, (off_t)at);

		if (n <= 0)
			return false;
		bytes += n;
		at += (uint64_t)n;
		len -= (size_t)n;
	}
	return true;
}

/* --- the head -------------------------------------------------------------------------- */

static bool head_is_whole(struct foam *f, uint64_t size)
{
	struct foam_head *h = &f->head;

	if (!bytes_at(f, 0, h, sizeof(*h)) || h->magic != FOAM_MAGIC)
		return wrong(f, "is no image, or is cut");
	if (h->version != FOAM_VERSION)
		return wrong(f, "is of another version of mve (format %u, this one reads %u)",
			     h->version, FOAM_VERSION);
	if (h->crc != crc32c(0, h, offsetof(struct foam_head, crc)))
		return wrong(f, "is damaged: its head");
	if (h->size != size)
		return wrong(f, "is cut: %lu bytes of %lu", (unsigned long)size,
			     (unsigned long)h->size);
	return true;
}

static bool head_is_ours(struct foam *f, const uint64_t recording[2])
{
	const struct foam_head *h = &f->head;

	if (memcmp(h->recording, recording, sizeof(h->recording)))
		return wrong(f, "is of another recording");
	if (h->event_version != EVENT_VERSION || h->ring_version != RING_VERSION ||
	    h->area_version != AREA_VERSION || h->brief_version != BRIEF_VERSION ||
	    h->inside != foam_inside())
		return wrong(f, "is of another build of mve, which alone can go on from it");
	if (h->maps > FOAM_MAPS || h->lanes > LANES || h->programs > AREA_IMAGES ||
	    h->ended > ENDED_MAX || !h->processes || h->processes > COPIES_MAX ||
	    !h->programs != (h->process > 0) || h->auxv_len > FOAM_AUXV ||
	    h->rights.groups > FOAM_GROUPS || !memchr(h->exe, 0, sizeof(h->exe)) ||
	    foam_runs_at(h) > h->size)
		return wrong(f, "makes no sense: its head");
	return true;
}

/* --- its rows -------------------------------------------------------------------------- */

static bool map_is_sane(const struct foam_map *m, uint64_t after)
{
	return m->start >= after && m->start < m->end && m->end <= TOP &&
	       !((m->start | m->end | m->offset) % PAGE) && m->kind < FOAM_KINDS &&
	       !(m->prot & ~(uint32_t)(PROT_READ | PROT_WRITE | PROT_EXEC)) &&
	       memchr(m->path, 0, sizeof(m->path));
}

static bool maps_are_sane(const struct foam *f)
{
	uint64_t after = PAGE;
	bool sane = true;

	for (uint32_t i = 0; i < f->head.maps && sane; i++) {
		sane = map_is_sane(&f->map[i], after);
		after = f->map[i].end;
	}
	return sane;
}

static bool lanes_are_sane(const struct foam *f)
{
	bool sane = true;

	for (uint32_t i = 0; i < f->head.lanes && sane; i++)
		sane = f->lane[i].lane < LANES && f->lane[i].life &&
		       (!i || f->lane[i].lane > f->lane[i - 1].lane);
	return sane;
}

static bool programs_are_sane(const struct foam *f)
{
	bool sane = true;

	for (uint32_t i = 0; i < f->head.programs && sane; i++)
		sane = memchr(f->program[i].exe, 0, sizeof(f->program[i].exe));
	return sane;
}

static void *rows_read(struct foam *f, uint64_t *at, uint32_t n, size_t each, uint32_t *crc)
{
	size_t len = n * each;
	void *rows = calloc(n + 1, each);

	MUST(rows);
	if (!bytes_at(f, *at, rows, len))
		wrong(f, "is cut");
	*crc = crc32c(*crc, rows, len);
	*at += len;
	return rows;
}

static bool rows_are_whole(struct foam *f)
{
	uint64_t at = sizeof(f->head);
	uint32_t crc = 0;

	f->map = rows_read(f, &at, f->head.maps, sizeof(*f->map), &crc);
	f->lane = rows_read(f, &at, f->head.lanes, sizeof(*f->lane), &crc);
	f->program = rows_read(f, &at, f->head.programs, sizeof(*f->program), &crc);
	f->ended = rows_read(f, &at, f->head.ended, sizeof(*f->ended), &crc);
	MUST(at == foam_runs_at(&f->head));
	if (f->why[0] || crc != f->head.rows)
		return wrong(f, "is damaged: its rows");
	if (!maps_are_sane(f) || !lanes_are_sane(f) || !programs_are_sane(f))
		return wrong(f, "makes no sense: its rows");
	return true;
}

/* --- its memory ------------------------------------------------------------------------ */

uint64_t foam_run_read(const struct foam *f, uint64_t offset, struct foam_run *run, void *bytes)
{
	if (!bytes_at(f, offset, run, sizeof(*run)) || run->len > FOAM_RUN ||
	    !bytes_at(f, offset + sizeof(*run), bytes, run->len) ||
	    run->crc != foam_run_crc(run, bytes)) {
		run->len = ~0u;
		return 0;
	}
	return run->len ? offset + sizeof(*run) + run->len : 0;
}

/* It comes over a mapping that has bytes. */
static bool run_is_sane(const struct foam *f, const struct foam_run *run)
{
	for (uint32_t i = 0; i < f->head.maps; i++) {
		const struct foam_map *m = &f->map[i];

		if (run->at >= m->start && run->at < m->end)
			return foam_has_bytes(m->kind) && run->len <= m->end - run->at;
	}
	return false;
}

static bool runs_are_whole(struct foam *f)
{
	static uint8_t bytes[FOAM_RUN];
	uint64_t at = foam_runs_at(&f->head), all = 0;
	struct foam_run run;

	do {
		at = foam_run_read(f, at, &run, bytes);
		if (run.len == ~0u)
			return wrong(f, "is damaged: its memory, behind %lu bytes",
				     (unsigned long)all);
		all += run.len;
		if (run.len && !run_is_sane(f, &run))
			return wrong(f, "makes no sense: its memory");
	} while (at);
	return all == f->head.bytes || wrong(f, "makes no sense: how much it has");
}

uint32_t foam_threads(const struct foam *f)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < f->head.lanes; i++)
		n += f->lane[i].open;
	return n;
}

/* --- opening it ------------------------------------------------------------------------ */

static bool foam_take(struct foam *f, uint64_t size, const uint64_t recording[2])
{
	return head_is_whole(f, size) && head_is_ours(f, recording) && rows_are_whole(f) &&
	       runs_are_whole(f);
}

void foam_close(struct foam *f)
{
	while (f) {
		struct foam *next = f->next;

		if (f->fd >= 0)
			close(f->fd);
		free(f->map);
		free(f->lane);
		free(f->program);
		free(f->ended);
		free(f);
		f = next;
	}
}

/* One of its processes; `first` is there, or it is the first. */
static struct foam *process_open(int folder, uint32_t number, uint32_t process,
				 const struct foam *first, const uint64_t recording[2], char *why,
				 size_t size)
{
	struct foam *f = calloc(1, sizeof(*f));
	uint64_t len = 0;
	char name[32];

	MUST(f);
	foam_name(name, number, process);
	f->fd = folder_file(folder, name, &len);
	if (f->fd == -ENOENT)
		wrong(f, "is missing%s", process ? "" : ": mve record was ended before it was "
							"written");
	else if (f->fd < 0)
		wrong(f, "cannot be read: %s", folder_why(-f->fd));
	else if (foam_take(f, len, recording) &&
		 (f->head.process != process || (first && f->head.taken != first->head.taken)))
		wrong(f, "is of another image");
	if (!f->why[0])
		return f;
	snprintf(why, size, "its image %s %s", name, f->why);
	foam_close(f);
	return NULL;
}

struct foam *foam_open(int folder, uint32_t number, const uint64_t recording[2], char *why,
		       size_t size)
{
	struct foam *first = process_open(folder, number, 0, NULL, recording, why, size);
	struct foam *last = first;

	for (uint32_t i = 1; last && i < first->head.processes; i++) {
		last->next = process_open(folder, number, i, first, recording, why, size);
		last = last->next;
	}
	if (last || !first)
		return first;
	foam_close(first);
	return NULL;
}

/* Those of the folder, by their names: a cut recording may have one that nobody names. */
bool foam_all_whole(int folder, const uint64_t recording[2], char *why, size_t size)
{
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	bool whole = dir;
	char name[32];
	uint32_t n;

	for (struct dirent *d; whole && (d = readdir(dir));) {
		struct foam *f;

		if (sscanf(d->d_name, "%u", &n) != 1)
			continue;
		foam_name(name, n, 0);
		if (strcmp(name, d->d_name))
			continue;
		f = foam_open(folder, n, recording, why, size);
		whole = f;
		if (f)
			foam_close(f);
	}
	if (dir)
		closedir(dir);
	else if (fd >= 0)
		close(fd);
	return whole;
}
