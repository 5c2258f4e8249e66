/*
 * Writing an image: the memory of processes that sleep, by their maps and page maps, a file each.
 *
 * Of private memory that has no file all pages are written that are not zero; of a file's those
 * that differ from it, which the kernel says, and of one whose patched code was mapped in its
 * place (patch/shelf.h) all.  A file that is not the mapped one any more, or whose name is not
 * known, is memory as any other.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/core/ring.h"
#include "engine/outside/bytes/crc32c.h"
#include "engine/outside/foam/foam.h"
#include "engine/outside/kernel/maps.h"
#include "engine/outside/kernel/process.h"
#include "engine/outside/monitor/streams.h"
#include "engine/outside/patch/shelf.h"
#include "engine/outside/start/auxv.h"

#define PAGE		4096ull
#define PAGES		(FOAM_RUN / PAGE)
#define PAGE_FILE	(1ull << 61)	/* pagemap: of a file, or shared */
#define PAGE_SWAPPED	(1ull << 62)
#define PAGE_PRESENT	(1ull << 63)

/* Of memory that several processes have mapped, what is written already. */
struct stretch {
	uint64_t dev, inode, offset, end;
};

struct writing {
	const struct foam_want *want;
	const struct foam_of *of;	/* whose file it is */
	struct stretch *stretch;
	unsigned stretches;
	uint64_t taken;
	struct foam_head head;
	struct foam_map *map;
	struct foam_lane lane[LANES];
	struct foam_ended ended[MOVES_MAX];
	int fd;
	uint64_t at;
	int error;
	uint64_t page[PAGES];
	uint8_t bytes[FOAM_RUN];
	struct foam_run run;
	uint8_t run_bytes[FOAM_RUN];
};

/* 0, or a negative errno: it may have ended. */
static int read_at(const struct foam_of *of, uint64_t at, void *to, size_t len)
{
	ssize_t n = pread(of->memory, to, len, (off_t)at);

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
	if (is_in(m, boot->area, AREA_ROOM))
		return FOAM_AREA;
	if (is_in(m, boot->brief, BRIEF_ROOM))
		return FOAM_BRIEF;
	if (shelf_is_rest(m))
		return FOAM_SHELF;
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
		.dev = m->dev, .shelved = m->shelved,
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
	int result = maps_read(w->of->pid, &maps);

	if (!result)
		result = read_at(w->of, w->head.point.boot, &boot, sizeof(boot));
	if (!result && (maps.n > FOAM_MAPS || boot.magic != BOOT_MAGIC))
		result = maps.n > FOAM_MAPS ? -E2BIG : -EINVAL;
	free(w->map);
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

/* Where its program is, if its name has room. */
static int exe_note(struct foam_head *h, pid_t pid)
{
	char name[64];
	ssize_t n;

	snprintf(name, sizeof(name), "/proc/%d/exe", pid);
	n = readlink(name, h->exe, sizeof(h->exe));
	if (n < 0 || n == sizeof(h->exe))
		return n < 0 ? -errno : -ENAMETOOLONG;
	h->exe[n] = 0;
	return 0;
}

static int limits_note(struct foam_head *h, pid_t pid)
{
	int result = process_limits(pid, h->limit);

	_Static_assert(FOAM_LIMITS == RLIM_NLIMITS, "all limits");
	h->mask = process_mask(pid);
	return result ? result : foam_rights_note(pid, &h->rights);
}

static int head_fill(struct writing *w)
{
	const struct foam_want *want = w->want;
	const struct version *v = want->twin;
	const struct foam_of *of = w->of;
	struct foam_head *h = &w->head;
	int result;

	*h = (struct foam_head){
		.magic = FOAM_MAGIC, .version = FOAM_VERSION, .event_version = EVENT_VERSION,
		.ring_version = RING_VERSION, .area_version = AREA_VERSION,
		.brief_version = BRIEF_VERSION, .inside = foam_inside(), .taken = w->taken,
		.processes = want->processes, .process = (uint32_t)(of - want->of),
		.point_at = of->point, .pid = of->was, .parent = of->parent, .group = of->group,
		.filters = v->area->filters };
	memcpy(h->recording, want->recording, sizeof(h->recording));
	memcpy(h->unsealed, v->area->unsealed, sizeof(h->unsealed));
	if (!process_mm(of->pid, &h->mm))
		return -ESRCH;
	result = read_at(of, of->point, &h->point, sizeof(h->point));
	if (!result)
		result = auxv_note(h, of->pid);
	if (!result)
		result = exe_note(h, of->pid);
	return result ? result : limits_note(h, of->pid);
}

/* What the first process' file has of all of them. */
static void version_note(struct writing *w)
{
	const struct version *v = w->want->twin;
	const struct images *words = &v->brief->images;

	lanes_note(w);
	w->head.programs = v->images < AREA_IMAGES ? v->images : AREA_IMAGES;
	for (uint32_t i = w->want->processes; i < words->moves && i < MOVES_MAX; i++)
		w->ended[w->head.ended++] = (struct foam_ended){ words->move[i].was,
								 words->move[i].parent };
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
	if ((m->kind == FOAM_FILE && !m->shelved) || m->kind == FOAM_INSIDE)
		return page & (PAGE_PRESENT | PAGE_SWAPPED) && !(page & PAGE_FILE);
	/* Of shared memory a page may be there that this process has not touched. */
	return m->kind == FOAM_MEMORY || m->path[0] == '/' ||
	       page & (PAGE_PRESENT | PAGE_SWAPPED);
}

/* A page behind the end of its file has nothing, and cannot be read. */
static void page_write(struct writing *w, const struct foam_map *m, uint64_t at, uint64_t page)
{
	if (!is_own(m, page) ||
	    pread(w->of->memory, w->bytes, PAGE, (off_t)at) != (ssize_t)PAGE ||
	    (m->kind != FOAM_FILE && m->kind != FOAM_INSIDE && is_zero(w->bytes)))
		return;
	page_put(w, at, w->bytes);
}

/* Another process, or another mapping, has had all of it. */
static bool is_written(struct writing *w, const struct foam_map *m)
{
	uint64_t end = m->offset + (m->end - m->start);

	for (unsigned i = 0; i < w->stretches; i++) {
		const struct stretch *s = &w->stretch[i];

		if (s->dev == m->dev && s->inode == m->inode && s->offset <= m->offset &&
		    s->end >= end)
			return true;
	}
	w->stretch = realloc(w->stretch, (w->stretches + 1) * sizeof(*w->stretch));
	MUST(w->stretch);
	w->stretch[w->stretches++] = (struct stretch){ m->dev, m->inode, m->offset, end };
	return false;
}

/* A run is of one mapping. */
static void map_write(struct writing *w, const struct foam_map *m)
{
	run_end(w);
	if (!foam_has_bytes(m->kind) || (m->kind == FOAM_MEMORY && is_written(w, m)))
		return;
	for (uint64_t at = m->start; at < m->end && !w->error; at += FOAM_RUN) {
		uint64_t n = (m->end - at) / PAGE < PAGES ? (m->end - at) / PAGE : PAGES;
		ssize_t got = pread(w->of->pagemap, w->page, n * 8, (off_t)(at / PAGE * 8));

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
		{ w->ended, w->head.ended * sizeof(*w->ended) },
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

static int process_write(struct writing *w)
{
	int result = head_fill(w);

	if (!result)
		result = maps_note(w);
	if (result)
		return result;
	if (w->of == w->want->of)
		version_note(w);
	all_put(w);
	/* What was not there is zero, unless it had ended by then. */
	if (!w->error)
		w->error = read_at(w->of, w->of->point, &w->head.point, sizeof(w->head.point));
	if (!w->error && fsync(w->fd) < 0)
		w->error = -errno;
	return w->error;
}

void foam_name(char name[32], uint32_t number, uint32_t process)
{
	if (process)
		snprintf(name, 32, FOAM_OTHER, number, process);
	else
		snprintf(name, 32, FOAM_NAME, number);
}

static void part_name(char part[48], uint32_t number, uint32_t process)
{
	char name[32];

	foam_name(name, number, process);
	snprintf(part, 48, "%s.part", name);
}

void foam_unlink(int folder, uint32_t number, bool parts)
{
	char name[32], part[48];

	for (uint32_t i = 0; i < COPIES_MAX; i++) {
		foam_name(name, number, i);
		unlinkat(folder, name, 0);
		part_name(part, number, i);
		if (parts)
			unlinkat(folder, part, 0);
	}
}

/* It gets its name when it is whole. */
static int file_write(struct writing *w)
{
	const struct foam_want *want = w->want;
	char name[32], part[48];
	int result;

	foam_name(name, want->number, (uint32_t)(w->of - want->of));
	part_name(part, want->number, (uint32_t)(w->of - want->of));
	w->fd = openat(want->folder, part, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
		       0600);
	if (w->fd < 0)
		return -errno;
	result = process_write(w);
	close(w->fd);
	if (!result && renameat(want->folder, part, want->folder, name) < 0)
		result = -errno;
	return result;
}

int foam_write(const struct foam_want *want)
{
	struct writing *w = calloc(1, sizeof(*w));
	int result = 0;

	MUST(w && want->processes && want->processes <= COPIES_MAX);
	w->want = want;
	if (getrandom(&w->taken, sizeof(w->taken), 0) != sizeof(w->taken))
		return -EIO;
	/* The first one's is what says that there is an image: it comes last. */
	for (unsigned i = want->processes; i-- && !result;) {
		w->of = &want->of[i];
		MUST(w->of->point);
		result = file_write(w);
	}
	if (result)
		foam_unlink(want->folder, want->number, true);
	else
		fsync(want->folder);
	return result;
}
