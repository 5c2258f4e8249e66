/*
 * A process of an image.  It has been begun as the recorded program, so that it is one by its
 * name and its file, and stands at its first instruction.  What is mapped there goes; what the
 * file says is mapped, by calls made in its name, and filled; then its one thread goes on where
 * the copy slept (inside/rewind/asleep.c).
 *
 * The calls are made from a page that neither of the two has, the bridge, which the inside gives
 * up.  Of descriptors it has those of the session and of shared memory that it is mapped of, until
 * that is done.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/core/ring.h"
#include "engine/outside/foam/foam.h"
#include "engine/outside/kernel/maps.h"
#include "engine/outside/kernel/remote.h"
#include "engine/outside/log/replay.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/streams.h"
#include "engine/outside/start/image.h"
#include "engine/outside/start/vdso.h"

#define PAGE		4096ull
#define BRIDGE_LOWEST	0x10000ull
#define BRIDGE_STEP	0x100000ull
#define BRIDGE_TOP	(1ull << 46)
#define BRIDGE_LEN	(2 * PAGE)	/* code, and what calls point to */
#define TEXT_MAX	(PAGE - 8)

struct making {
	struct version *v;
	struct foam *f;
	struct remote r;
	struct maps maps;	/* of the program that was begun */
	uint64_t bridge;
	uint64_t vdso;		/* where the kernel's is now */
};

static bool failed(long result)
{
	return result < 0 && result > -4096;
}

__attribute__((format(printf, 2, 3)))
static int not_made(struct making *k, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(k->f->why, sizeof(k->f->why), fmt, ap);
	va_end(ap);
	return -EINVAL;
}

/* --- the bridge ------------------------------------------------------------------------ */

static bool is_free(const struct making *k, uint64_t from, uint64_t to)
{
	if (k->bridge < to && from < k->bridge + BRIDGE_LEN)
		return false;
	for (size_t i = 0; i < k->maps.n; i++)
		if (k->maps.map[i].start < to && from < k->maps.map[i].end)
			return false;
	for (uint32_t i = 0; i < k->f->head.maps; i++)
		if (k->f->map[i].start < to && from < k->f->map[i].end)
			return false;
	return true;
}

/* Room that neither of the two uses; 0: there is none. */
static uint64_t room_find(const struct making *k, uint64_t len)
{
	uint64_t at = BRIDGE_LOWEST;

	while (at < BRIDGE_TOP && !is_free(k, at - PAGE, at + len + PAGE))
		at += BRIDGE_STEP;
	return at < BRIDGE_TOP ? at : 0;
}

/* From here on calls are made there. */
static int bridge_make(struct making *k)
{
	uint64_t at = room_find(k, BRIDGE_LEN), old = k->r.at;
	uint8_t code[sizeof(k->r.saved)];
	long got;

	if (!at)
		return -ENOMEM;
	got = REMOTE(&k->r, SYS_mmap, at, BRIDGE_LEN, PROT_READ | PROT_WRITE | PROT_EXEC,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, (uint64_t)-1, 0);
	if (got != (long)at)
		return failed(got) ? (int)got : -EEXIST;
	if (memory_read(k->r.memory, old, code, sizeof(code)) ||
	    memory_write(k->r.memory, at, code, sizeof(code)))
		return -EIO;
	k->bridge = k->r.at = at;
	memcpy(k->r.saved, code, sizeof(code));
	return 0;
}

/* Bytes that a call points to. */
static uint64_t pointed(struct making *k, const void *bytes, size_t len)
{
	MUST(len <= TEXT_MAX);
	return memory_write(k->r.memory, k->bridge + PAGE, bytes, len) ? 0 : k->bridge + PAGE;
}

/* --- what was there goes --------------------------------------------------------------- */

static bool is_kernels(const struct map *m)
{
	return !strncmp(m->path, "[vdso]", 6) || !strncmp(m->path, "[vvar", 5);
}

static bool is_call_page(const struct map *m)
{
	return !strncmp(m->path, "[vsyscall]", 10);
}

static int all_unmap(struct making *k)
{
	long result = 0;

	for (size_t i = 0; i < k->maps.n && !result; i++) {
		const struct map *m = &k->maps.map[i];

		if (!is_kernels(m) && !is_call_page(m))
			result = REMOTE(&k->r, SYS_munmap, m->start, m->end - m->start);
	}
	return (int)result;
}

/* --- the kernel's own pages ------------------------------------------------------------ */

struct range { uint64_t start, end; };

static struct range kernels_are(const struct making *k)
{
	struct range r = { 0, 0 };

	for (size_t i = 0; i < k->maps.n; i++)
		if (is_kernels(&k->maps.map[i])) {
			r.start = r.start ? r.start : k->maps.map[i].start;
			r.end = k->maps.map[i].end;
		}
	return r;
}

static struct range kernels_were(const struct making *k)
{
	struct range r = { 0, 0 };

	for (uint32_t i = 0; i < k->f->head.maps; i++)
		if (k->f->map[i].kind == FOAM_VDSO) {
			r.start = r.start ? r.start : k->f->map[i].start;
			r.end = k->f->map[i].end;
		}
	return r;
}

static int kernels_move(struct making *k, int64_t by)
{
	long at = 0;

	for (size_t i = 0; i < k->maps.n && !failed(at); i++) {
		struct map *m = &k->maps.map[i];
		uint64_t len = m->end - m->start;

		if (!is_kernels(m))
			continue;
		at = REMOTE(&k->r, SYS_mremap, m->start, len, len, MREMAP_MAYMOVE | MREMAP_FIXED,
			    m->start + (uint64_t)by);
		m->start += (uint64_t)by;
		m->end += (uint64_t)by;
	}
	return failed(at) ? (int)at : 0;
}

/*
 * Where they were, if this kernel's are as long; else out of the way.  By way of a place that is
 * free, for the two may overlap.
 */
static int kernels_place(struct making *k)
{
	struct range is = kernels_are(k), was = kernels_were(k);
	uint64_t room = room_find(k, is.end - is.start);
	bool same = was.end - was.start == is.end - is.start;
	int result = 0;

	if (!is.end)
		return 0;
	if (!room)
		return -ENOMEM;
	if (!same || is.start != was.start)
		result = kernels_move(k, (int64_t)(room - is.start));
	if (!result && same && is.start != was.start)
		result = kernels_move(k, (int64_t)(was.start - room));
	for (size_t i = 0; i < k->maps.n; i++)
		if (!strncmp(k->maps.map[i].path, "[vdso]", 6))
			k->vdso = k->maps.map[i].start;
	return result;
}

/* --- mappings -------------------------------------------------------------------------- */

static int map_by(struct making *k, const struct foam_map *m, uint64_t flags, long fd,
		  uint64_t offset, uint64_t prot)
{
	long at;

	MUST(k->bridge && (m->end <= k->bridge || m->start >= k->bridge + BRIDGE_LEN));
	at = REMOTE(&k->r, SYS_mmap, m->start, m->end - m->start, prot,
		    flags | MAP_FIXED | MAP_NORESERVE, (uint64_t)fd, offset);
	return at == (long)m->start ? 0 : failed(at) ? (int)at : -EIO;
}

static long tracee_open(struct making *k, const char *path)
{
	uint64_t at = pointed(k, path, strlen(path) + 1);

	return at ? REMOTE(&k->r, SYS_openat, (uint64_t)AT_FDCWD, at, O_RDONLY | O_CLOEXEC) : -EIO;
}

static bool file_is_same(const struct foam_map *m)
{
	int fd = open(m->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	bool same = fd >= 0 && foam_file_crc(fd, m->offset, m->end - m->start) == m->crc;

	if (fd >= 0)
		close(fd);
	return same;
}

static int file_map(struct making *k, const struct foam_map *m)
{
	bool shared = m->kind == FOAM_FILE_SHARED;
	int result;
	long fd;

	if (!file_is_same(m))
		return not_made(k, "%s is not there, or another than was mapped", m->path);
	fd = tracee_open(k, m->path);
	if (failed(fd))
		return not_made(k, "%s: %s", m->path, strerror((int)-fd));
	result = map_by(k, m, shared ? MAP_SHARED : MAP_PRIVATE, fd, m->offset, m->prot);
	REMOTE(&k->r, SYS_close, (uint64_t)fd);
	return result;
}

/* The tracee has inherited it. */
static int memory_map(struct making *k, const struct foam_map *m)
{
	int fd = foam_object(m);

	return fd < 0 ? fd : map_by(k, m, MAP_SHARED, fd, m->offset, m->prot);
}

static int inside_map(struct making *k, const struct foam_map *m)
{
	int fd = inside_image_fd();

	return fd < 0 ? fd : map_by(k, m, MAP_PRIVATE, fd, m->offset, m->prot);
}

/* The monitor's page, over all that the leader had; and over that the two sections. */
static int streams_map(struct making *k, const struct foam_map *m)
{
	const struct monitor *mon = k->v->monitor;
	const struct realm *realm = &mon->realm[0];
	uint64_t size = section_size(mon->conduct->chunks);
	struct foam_map all = { .start = m->start,
				.end = m->start + replay_span(mon->options->replay) };
	int result = map_by(k, &all, MAP_SHARED, mon->conduct_fd, 0, PROT_READ);

	MUST(k->v->index < mon->conduct->sections && !mon->realm[1].conduct);
	for (uint32_t v = 0; v < mon->conduct->sections && !result; v++) {
		bool own = v == k->v->index;

		all.start = m->start + section_offset(mon->conduct->chunks, v);
		all.end = all.start + size;
		result = map_by(k, &all, MAP_SHARED,
				own ? realm->section_fd[v] : realm->section_read_fd[v], 0,
				own ? PROT_READ | PROT_WRITE : PROT_READ);
	}
	return result;
}

static bool is_first_of(const struct making *k, uint32_t row)
{
	return !row || k->f->map[row - 1].kind != k->f->map[row].kind;
}

static int map_make(struct making *k, uint32_t row)
{
	const struct foam_map *m = &k->f->map[row];
	uint64_t anonymous = MAP_PRIVATE | MAP_ANONYMOUS;

	switch ((enum foam_kind)m->kind) {
	case FOAM_ZERO:
		return map_by(k, m, anonymous, -1, 0, m->prot);
	case FOAM_STACK:
		return map_by(k, m, anonymous | MAP_GROWSDOWN | MAP_STACK, -1, 0, m->prot);
	case FOAM_FILE:
	case FOAM_FILE_SHARED:
		return file_map(k, m);
	case FOAM_MEMORY:
		return memory_map(k, m);
	case FOAM_INSIDE:
		return inside_map(k, m);
	case FOAM_AREA:
		return map_by(k, m, MAP_SHARED, k->v->area_fd, 0, PROT_READ | PROT_WRITE);
	case FOAM_BRIEF:
		return map_by(k, m, MAP_SHARED, k->v->brief_fd, 0, PROT_READ);
	case FOAM_STREAMS:
		return is_first_of(k, row) ? streams_map(k, m) : 0;
	case FOAM_SHELF:
		return map_by(k, m, anonymous, -1, 0, PROT_NONE);
	case FOAM_VDSO:
	case FOAM_KINDS:
		break;
	}
	return 0;
}

static int maps_make(struct making *k)
{
	uint32_t row = 0;
	int result = 0;

	for (uint32_t i = 0; i < k->f->head.maps && !result; i++)
		result = map_make(k, row = i);
	if (result)
		say_log("image", "row %u of %u: kind %u, %s", row, k->f->head.maps,
			k->f->map[row].kind, k->f->map[row].path);
	return result;
}

/* --- memory ---------------------------------------------------------------------------- */

static const struct foam_map *map_of(const struct foam *f, uint64_t at)
{
	const struct foam_map *m = f->map;

	while (m < f->map + f->head.maps && m->end <= at)
		m++;
	MUST(m < f->map + f->head.maps && m->start <= at);	/* run_is_sane */
	return m;
}

/* What processes share may be mapped so that it cannot be written there. */
static int run_write(struct making *k, const struct foam_run *run, const void *bytes)
{
	const struct foam_map *m = map_of(k->f, run->at);

	if (m->kind != FOAM_MEMORY)
		return memory_write(k->r.memory, run->at, bytes, run->len) ? -EFAULT : 0;
	return pwrite(foam_object(m), bytes, run->len, (off_t)(m->offset + (run->at - m->start))) ==
	       (ssize_t)run->len ? 0 : -EIO;
}

static int bytes_write(struct making *k)
{
	static uint8_t bytes[FOAM_RUN];
	int result = 0;
	uint64_t at = foam_runs_at(&k->f->head);
	struct foam_run run;

	do {
		at = foam_run_read(k->f, at, &run, bytes);
		if (run.len == ~0u)
			return -EIO;
		if (run.len)
			result = run_write(k, &run, bytes);
	} while (at && !result);
	return result;
}

/* What it is told, of this session. */
static int point_write(struct making *k)
{
	struct foam_point *p = &k->f->head.point;
	uint64_t vdso[VDSO_FUNCTIONS];
	int result;

	p->key = k->v->key;
	p->version = k->v->index;
	p->bridge = k->bridge;
	p->bridge_len = BRIDGE_LEN;
	result = memory_write(k->r.memory, k->f->head.point_at, p, sizeof(*p));
	vdso_functions(k->r.memory, k->vdso, vdso);
	if (!result && k->vdso)
		result = memory_write(k->r.memory, p->boot + BOOT_VDSO, vdso, sizeof(vdso));
	return result;
}

/* --- what the kernel keeps ------------------------------------------------------------- */

static int mm_tell(struct making *k)
{
	const struct foam_head *h = &k->f->head;
	struct { struct prctl_mm_map mm; uint8_t auxv[FOAM_AUXV]; } told = { .mm = h->mm };
	uint64_t at = k->bridge + PAGE;
	long result;

	_Static_assert(sizeof(told) <= TEXT_MAX, "it has room");
	told.mm.brk = h->point.brk;
	told.mm.auxv = (void *)(at + sizeof(told.mm));
	told.mm.auxv_size = h->auxv_len;
	told.mm.exe_fd = (uint32_t)-1;
	memcpy(told.auxv, h->auxv, h->auxv_len);
	if (!pointed(k, &told, sizeof(told)))
		return -EIO;
	result = REMOTE(&k->r, SYS_prctl, PR_SET_MM, PR_SET_MM_MAP, at, sizeof(told.mm), 0);
	if (result && h->point.brk)	/* a heap that does not grow is another program */
		return not_made(k, "the kernel does not take its layout: %s",
				strerror((int)-result));
	return 0;
}

static void registers_fill(const struct making *k, struct user_regs_struct *regs)
{
	const struct foam_point *p = &k->f->head.point;

	MUST(p->bridge == k->bridge);
	*regs = k->r.regs;
	regs->orig_rax = (uint64_t)-1;
	regs->rax = 1;			/* what context_save comes back with */
	regs->rip = p->context[0];
	regs->rsp = p->context[1];
	regs->rbx = p->context[2];
	regs->rbp = p->context[3];
	regs->r12 = p->context[4];
	regs->r13 = p->context[5];
	regs->r14 = p->context[6];
	regs->r15 = p->context[7];
	regs->fs_base = p->fs;
	regs->gs_base = p->block;
}

static int rights_make(struct making *k)
{
	int result = foam_rights_make(&k->r, k->bridge + PAGE, &k->f->head.rights);

	return result == -EPERM ?
	       not_made(k, "it had rights that are not ours: replay it as root") : result;
}

static int closed(struct making *k)
{
	return (int)REMOTE(&k->r, SYS_close_range, 0, ~0u, 0);
}

/* In this order. */
static const struct step { const char *name; int (*make)(struct making *k); } steps[] = {
	{ "bridge", bridge_make }, { "unmap", all_unmap }, { "vdso", kernels_place },
	{ "maps", maps_make }, { "memory", bytes_write }, { "point", point_write },
	{ "layout", mm_tell }, { "rights", rights_make }, { "descriptors", closed },
};

static int all_make(struct making *k)
{
	int result = 0;

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]) && !result; i++) {
		result = steps[i].make(k);
		if (result)
			say_log("image", "pid %d: %s: %s", k->r.pid, steps[i].name,
				strerror(-result));
	}
	return result;
}

int foam_make(struct version *v, struct foam *f)
{
	struct making *k = calloc(1, sizeof(*k));
	pid_t pid = f->pid;
	struct user_regs_struct regs;
	int result;

	MUST(k && v->monitor->conduct && f->map && v->index);
	k->v = v;
	k->f = f;
	result = maps_read(pid, &k->maps);
	if (!result)
		result = remote_begin(&k->r, pid);
	if (!result) {
		result = all_make(k);
		if (!result)
			registers_fill(k, &regs);
		k->r.mask = ~0ull;
		remote_end(&k->r, result ? &k->r.regs : &regs);
	}
	maps_free(&k->maps);
	free(k);
	return result;
}

/* --- the rest of the session ----------------------------------------------------------- */

static void stay_open(int fd)
{
	if (fd >= 0)
		fcntl(fd, F_SETFD, 0);
}

void foam_keep(const struct version *v)
{
	const struct monitor *m = v->monitor;

	stay_open(v->area_fd);
	stay_open(v->brief_fd);
	stay_open(m->conduct_fd);
	stay_open(inside_image_fd());
	foam_objects_keep();
	for (uint32_t i = 0; i < m->conduct->sections; i++) {
		stay_open(m->realm[0].section_fd[i]);
		stay_open(m->realm[0].section_read_fd[i]);
	}
}

/* Where nobody stood a life is over: the follower reads none of it. */
static void lane_place(struct monitor *m, struct streams *own, const struct foam_lane *l,
		       struct version *v)
{
	struct section *s = streams_part(m, own->self);
	struct cursor *c = &streams_part(m, v->index)->cursor[l->lane];

	MUST(lane_open_from(own, l->lane, l->life, l->at));
	*c = (struct cursor){ .at = l->at, .life = l->life, .source = own->self,
			      .place = cursor_place(l->at, s->lane[l->lane].now),
			      .done = l->open ? 0 : l->life };
	s->lane[l->lane].pid = l->pid;
	s->lane[l->lane].owner = l->tid;
	if (!l->open)
		lane_close(own, l->lane);
	v->execs[l->lane] = l->execs;
}

int foam_lanes(struct monitor *m, const struct foam *first)
{
	struct streams own = { m->conduct, 0 };

	inside_image_fd();	/* our children have it, too */
	for (uint32_t i = 0; i < first->head.lanes; i++)
		lane_place(m, &own, &first->lane[i], &m->version[1]);
	m->conduct->following |= 1u << 1;
	return foam_objects_make(first);
}
