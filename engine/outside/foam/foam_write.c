/*
 * Writing an image: the memory of a process that sleeps, by its maps and its page map.
 *
 * Of private memory that has no file all pages are written that are not zero; of a file's those
 * that differ from it, which the kernel says.  A file that is not the mapped one any more, or
 * whose name is not known, is memory as any other.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/core/ring.h"
#include "engine/outside/bytes/crc32c.h"
#include "engine/outside/foam/foam.h"
#include "engine/outside/kernel/maps.h"
#include "engine/outside/kernel/process.h"
#include "engine/outside/monitor/streams.h"
#include "engine/outside/start/auxv.h"

#define PAGE		4096ull
#define PAGES		(FOAM_RUN / PAGE)
#define PAGE_FILE	(1ull << 61)	/* pagemap: of a file, or shared */
#define PAGE_SWAPPED	(1ull << 62)
#define PAGE_PRESENT	(1ull << 63)

struct writing {
	const struct foam_want *want;
	struct foam_head head;
	struct foam_map *map;
	struct foam_lane lane[LANES];
	int fd;
	uint64_t at;
	int error;
	uint64_t page[PAGES];
	uint8_t bytes[FOAM_RUN];
	struct foam_run run;
	uint8_t run_bytes[FOAM_RUN];
};

/* 0, or a negative errno: it may have ended. */
static int read_at(const struct foam_want *want, uint64_t at, void *to, size_t len)
{
	ssize_t n = pread(want->memory, to, len, (off_t)at);

	return n == (ssize_t)len ? 0 : n < 0 ? -errno : -ESRCH;
}

/* --- what each mapping is -------------------------------------------------------------- */

static bool is_in(const struct map *m, uint64_t from, uint64_t len)
{
	return m->start >= from && m->start < from + len;
}

static bool is_named(const struct map *m, const char *name)
{
	return !strncmp(m->path, name, strlen(name));
}

/* Its file, if that is still what is mapped. */
static int file_of(const struct map *m)
{
	int fd = m->path[0] == '/' && strlen(m->path) < sizeof(m->path) - 1 ?
		 open(m->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : -1;
	struct stat st;

	if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_ino == m->inode &&
	    st.st_dev == m->dev)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

static enum foam_kind kind_of_ours(const struct map *m, const struct boot *boot, uint64_t span)
{
	if (is_in(m, boot->streams, span))
		return FOAM_STREAMS;
	if (is_in(m, boot->area, sizeof(struct area)))
		return FOAM_AREA;
	if (is_in(m, boot->brief, sizeof(struct brief)))
		return FOAM_BRIEF;
	if (is_named(m, "/memfd:mve-inside"))
		return FOAM_INSIDE;
	if (is_named(m, "[vdso]") || is_named(m, "[vvar"))
		return FOAM_VDSO;
	return FOAM_KINDS;
}

/* `*to` has all but the kind. */
static enum foam_kind kind_of(const struct map *m, struct foam_map *to)
{
	int fd;

	if (m->shared && m->write)
		return FOAM_MEMORY;
	if (is_named(m, "[stack]"))
		return FOAM_STACK;
	fd = m->inode ? file_of(m) : -1;
	if (fd >= 0) {
		to->crc = foam_file_crc(fd, m->offset, m->end - m->start);
		close(fd);
		return m->shared ? FOAM_FILE_SHARED : FOAM_FILE;
	}
	return m->shared ? FOAM_MEMORY : FOAM_ZERO;
}

static void map_note(struct writing *w, const struct map *m, const struct boot *boot,
		     uint64_t span)
{
	struct foam_map *to = &w->map[w->head.maps];
	enum foam_kind kind = kind_of_ours(m, boot, span);

	if (is_named(m, "[vsyscall]"))
		return;
	*to = (struct foam_map){
		.start = m->start, .end = m->end, .offset = m->offset, .inode = m->inode,
		.prot = (m->read ? PROT_READ : 0u) | (m->write ? PROT_WRITE : 0u) |
			(m->exec ? PROT_EXEC : 0u) };
	memcpy(to->path, m->path, sizeof(to->path));
	to->kind = kind < FOAM_KINDS ? kind : kind_of(m, to);
	w->head.maps++;
}

static int maps_note(struct writing *w)
{
	const struct version *v = w->want->twin;
	const struct conduct *c = v->monitor->conduct;
	uint64_t span = section_offset(c->chunks, c->sections);
	struct boot boot;
	struct maps maps;
	int result = maps_read(v->server, &maps);

	if (!result)
		result = read_at(w->want, w->head.point.boot, &boot, sizeof(boot));
	if (!result && (maps.n > FOAM_MAPS || boot.magic != BOOT_MAGIC))
		result = maps.n > FOAM_MAPS ? -E2BIG : -EINVAL;
	w->map = calloc(maps.n, sizeof(*w->map));
	MUST(w->map);
	for (size_t i = 0; i < maps.n && !result; i++)
		map_note(w, &maps.map[i], &boot, span);
	maps_free(&maps);
	return result;
}

/* --- the rest of what is known of it --------------------------------------------------- */

static void lanes_note(struct writing *w)
{
	const struct version *v = w->want->twin;
	const struct section *own = streams_part(v->monitor, v->index);
	const struct section *leader = streams_part(v->monitor, v->monitor->leader);

	for (uint32_t i = 0; i < LANES; i++) {
		const struct cursor *c = &own->cursor[i];

		if (!c->life)
			continue;
		MUST(w->head.lanes < LANES);
		w->lane[w->head.lanes++] = (struct foam_lane){
			.at = c->at, .lane = i, .life = c->life, .open = c->done != c->life,
			.execs = v->execs[i], .pid = leader->lane[i].pid,
			.tid = leader->lane[i].owner };
	}
}

static int auxv_note(struct foam_head *h, pid_t pid)
{
	char name[64];
	ssize_t n;
	int fd;

	snprintf(name, sizeof(name), "/proc/%d/auxv", pid);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, h->auxv, sizeof(h->auxv));
	if (fd >= 0)
		close(fd);
	h->auxv_len = n > 0 ? (uint32_t)n : 0;
	return n > 0 ? 0 : -EIO;
}

static int head_fill(struct writing *w)
{
	const struct foam_want *want = w->want;
	const struct version *v = want->twin;
	struct foam_head *h = &w->head;
	int result;

	*h = (struct foam_head){
		.magic = FOAM_MAGIC, .version = FOAM_VERSION, .event_version = EVENT_VERSION,
		.ring_version = RING_VERSION, .area_version = AREA_VERSION,
		.brief_version = BRIEF_VERSION, .inside = foam_inside(),
		.point_at = want->point, .pid = leading(v->monitor)->server,
		.parent = want->parent, .group = want->group, .filters = v->area->filters,
		.programs = v->images < AREA_IMAGES ? v->images : AREA_IMAGES };
	memcpy(h->recording, want->recording, sizeof(h->recording));
	memcpy(h->unsealed, v->area->unsealed, sizeof(h->unsealed));
	if (!process_mm(v->server, &h->mm))
		return -ESRCH;
	result = read_at(want, want->point, &h->point, sizeof(h->point));
	return result ? result : auxv_note(h, v->server);
}

/* --- bytes ----------------------------------------------------------------------------- */

static void put(struct writing *w, const void *bytes, size_t len)
{
	const uint8_t *at = bytes;

	while (len && !w->error) {
		ssize_t n = pwrite(w->fd, at, len, (off_t)w->at);

		if (n <= 0) {
			w->error = n < 0 ? -errno : -ENOSPC;
			return;
		}
		at += n;
		w->at += (uint64_t)n;
		len -= (size_t)n;
	}
}

static void run_end(struct writing *w)
{
	if (!w->run.len)
		return;
	w->run.crc = foam_run_crc(&w->run, w->run_bytes);
	put(w, &w->run, sizeof(w->run));
	put(w, w->run_bytes, w->run.len);
	w->head.bytes += w->run.len;
	w->run.len = 0;
}

static void page_put(struct writing *w, uint64_t at, const uint8_t *bytes)
{
	if (w->run.len == FOAM_RUN || w->run.at + w->run.len != at)
		run_end(w);
	if (!w->run.len)
		w->run.at = at;
	MUST(w->run.len < FOAM_RUN && w->run.at + w->run.len == at);
	memcpy(w->run_bytes + w->run.len, bytes, PAGE);
	w->run.len += PAGE;
}

static bool is_zero(const uint8_t *page)
{
	return !page[0] && !memcmp(page, page + 1, PAGE - 1);
}

/* Whether the page may have what is nowhere else. */
static bool is_own(const struct foam_map *m, uint64_t page)
{
	if (m->kind == FOAM_FILE || m->kind == FOAM_INSIDE)
		return page & (PAGE_PRESENT | PAGE_SWAPPED) && !(page & PAGE_FILE);
	/* Of shared memory a page may be there that this process has not touched. */
	return m->kind == FOAM_MEMORY || m->path[0] == '/' ||
	       page & (PAGE_PRESENT | PAGE_SWAPPED);
}

/* A page behind the end of its file has nothing, and cannot be read. */
static void page_write(struct writing *w, const struct foam_map *m, uint64_t at, uint64_t page)
{
	if (!is_own(m, page) ||
	    pread(w->want->memory, w->bytes, PAGE, (off_t)at) != (ssize_t)PAGE ||
	    (m->kind != FOAM_FILE && m->kind != FOAM_INSIDE && is_zero(w->bytes)))
		return;
	page_put(w, at, w->bytes);
}

static void map_write(struct writing *w, const struct foam_map *m)
{
	if (!foam_has_bytes(m->kind))
		return;
	for (uint64_t at = m->start; at < m->end && !w->error; at += FOAM_RUN) {
		uint64_t n = (m->end - at) / PAGE < PAGES ? (m->end - at) / PAGE : PAGES;
		ssize_t got = pread(w->want->pagemap, w->page, n * 8, (off_t)(at / PAGE * 8));

		if (got != (ssize_t)(n * 8)) {
			w->error = got < 0 ? -errno : -EIO;
			return;
		}
		for (uint64_t i = 0; i < n && !w->error; i++)
			page_write(w, m, at + i * PAGE, w->page[i]);
	}
}

static uint32_t rows_put(struct writing *w)
{
	const struct version *v = w->want->twin;
	const struct { const void *bytes; size_t len; } part[] = {
		{ w->map, w->head.maps * sizeof(*w->map) },
		{ w->lane, w->head.lanes * sizeof(*w->lane) },
		{ v->image, w->head.programs * sizeof(*v->image) },
	};
	uint32_t crc = 0;

	for (size_t i = 0; i < sizeof(part) / sizeof(part[0]); i++) {
		put(w, part[i].bytes, part[i].len);
		crc = crc32c(crc, part[i].bytes, part[i].len);
	}
	return crc;
}

static void all_put(struct writing *w)
{
	struct foam_run last = { 0 };
	struct foam_head *h = &w->head;

	w->at = sizeof(*h);
	h->rows = rows_put(w);
	for (uint32_t i = 0; i < h->maps && !w->error; i++)
		map_write(w, &w->map[i]);
	run_end(w);
	last.crc = foam_run_crc(&last, NULL);
	put(w, &last, sizeof(last));
	h->size = w->at;
	h->crc = crc32c(0, h, offsetof(struct foam_head, crc));
	w->at = 0;
	put(w, h, sizeof(*h));
}

/* --- the file -------------------------------------------------------------------------- */

static int file_write(struct writing *w)
{
	int result = head_fill(w);

	if (!result)
		result = maps_note(w);
	if (result)
		return result;
	lanes_note(w);
	all_put(w);
	/* What was not there is zero, unless it had ended by then. */
	if (!w->error)
		w->error = read_at(w->want, w->want->point, &w->head.point,
				   sizeof(w->head.point));
	if (!w->error && fsync(w->fd) < 0)
		w->error = -errno;
	return w->error;
}

int foam_write(const struct foam_want *want)
{
	char name[32], part[48];
	struct writing *w = calloc(1, sizeof(*w));
	int result;

	MUST(w && want->point);
	w->want = want;
	snprintf(name, sizeof(name), FOAM_NAME, want->number);
	snprintf(part, sizeof(part), "%s.part", name);
	w->fd = openat(want->folder, part, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
		       0600);
	if (w->fd < 0)
		return -errno;
	result = file_write(w);
	close(w->fd);
	if (!result && renameat(want->folder, part, want->folder, name) < 0)
		result = -errno;
	if (result)
		unlinkat(want->folder, part, 0);
	else
		fsync(want->folder);
	return result;
}
