/*
 * From a plan to patched code.  Boards are written before the jumps that lead
 * to them, and each site's bytes are compared with what the plan was made from
 * (board_emit does it) before they are changed: a mapping that is not what its
 * file says stays as it is, for the net.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/outside/kernel/remote.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/patch/board.h"
#include "engine/outside/patch/mapped.h"
#include "engine/outside/patch/patch.h"
#include "engine/outside/patch/patched.h"
#include "engine/outside/patch/planner.h"
#include "engine/outside/plan/plan.h"

#define VDSO_MAX	0x10000

bool patch_is_vdso(const struct map *m)
{
	return !m->inode && !strcmp(m->path, "[vdso]");
}

/* The kernel's is the same in each process: it is planned once. */
static struct {
	struct plan *plan;
	uint8_t bytes[VDSO_MAX];
	size_t len;
} vdso;

static int plan_vdso(int memory, const struct map *m, struct plan **out)
{
	static uint8_t bytes[VDSO_MAX];
	size_t len = m->end - m->start;
	int result = len > VDSO_MAX ? -EFBIG : memory_read(memory, m->start, bytes, len);

	if (!result && (!vdso.plan || len != vdso.len || memcmp(bytes, vdso.bytes, len))) {
		plan_free(vdso.plan);
		vdso.plan = NULL;
		memcpy(vdso.bytes, bytes, len);
		vdso.len = len;
		result = plan_image(vdso.bytes, len, &vdso.plan);
	}
	if (result)
		return result;
	MUST(vdso.plan && vdso.len == len);
	plan_ref(vdso.plan);
	*out = vdso.plan;
	return 0;
}

int patch_open(pid_t pid, const struct map *m)
{
	struct near_file f;
	int result = mapped_find(pid, m, &f);

	if (result)
		return result;
	result = f.far ? -EAGAIN : near_read(f.fd);
	near_close(&f);
	return result;
}

int patch_plan(pid_t pid, int memory, const struct map *m, struct plan **out)
{
	struct near_file f;
	int result;

	if (patch_is_vdso(m))
		return plan_vdso(memory, m, out);
	if (!m->inode || m->shared)
		return -ENOENT;
	result = mapped_find(pid, m, &f);
	if (result)
		return result;
	result = planner_plan(&f, out);
	near_close(&f);
	return result;
}

/* Where the site is in memory, if its whole window lies in this mapping. */
bool patch_site_in(const struct plan_site *s, const struct map *m, uint64_t *at)
{
	uint64_t from = s->offset - s->before, to = s->offset + SITE_BYTES + s->after;

	MUST(s->offset >= s->before);	/* plan_fits */
	if (from < m->offset || to > m->offset + (m->end - m->start))
		return false;
	*at = m->start + (s->offset - m->offset);
	return true;
}

uint64_t patch_room_needed(const struct plan *p, const struct map *m)
{
	uint64_t need = 0, at;

	for (unsigned i = 0; i < p->n; i++)
		if (site_is_patched(&p->sites[i]) && patch_site_in(&p->sites[i], m, &at))
			need += BOARD_MAX;
	return (need + 0xfff) & ~0xfffull;
}

/* Where the code is read: in a process, in the mapping's file, or in what the vDSO was. */
struct source {
	int memory, fd;		/* or -1 */
};

/* What lies behind the file's end is zero, as the kernel maps it. */
int patch_file_read(int fd, uint64_t offset, uint8_t *to, uint64_t len)
{
	uint64_t got = 0;
	ssize_t n = 1;

	while (got < len && (n = pread(fd, to + got, len - got, (off_t)(offset + got))) > 0)
		got += (uint64_t)n;
	memset(to + got, 0, len - got);
	return n < 0 ? -errno : 0;
}

static int source_read(const struct source *s, const struct map *m, uint64_t from, uint8_t *to,
		       uint64_t len)
{
	if (s->memory >= 0)
		return memory_read(s->memory, m->start + from, to, len);
	if (s->fd >= 0)
		return patch_file_read(s->fd, m->offset + from, to, len);
	MUST(patch_is_vdso(m) && from + len <= vdso.len);
	memcpy(to, vdso.bytes + from, len);
	return 0;
}

#define APART	(64ull << 10)	/* what is nearer is read at one go */

/* A mapping may be of any size: of it the pages around its sites are read. */
static int batch_read(struct patch_batch *b, const struct source *s, const struct map *m,
		      const struct plan *p)
{
	uint64_t from = 0, to = 0, at;
	int result = 0;

	for (unsigned i = 0; !result && i < p->n; i++) {
		const struct plan_site *site = &p->sites[i];
		uint64_t first, last;

		if (!patch_site_in(site, m, &at))
			continue;
		first = (at - m->start - site->before) & ~0xfffull;
		last = (at - m->start + SITE_BYTES + site->after + 0xfff) & ~0xfffull;
		last = last < b->len ? last : b->len;
		if (first < from || first > to + APART) {
			result = source_read(s, m, from, b->code + from, to - from);
			from = first;
			to = last;
		}
		to = last > to ? last : to;
		MUST(from < to && to <= b->len);
	}
	return result ? result : source_read(s, m, from, b->code + from, to - from);
}

static int batch_begin(struct patch_batch *b, const struct map *m, const struct plan *p,
		       const struct board_room *room)
{
	MUST(board_room_fits(room));
	b->len = m->end - m->start;
	b->code = malloc(b->len);
	b->boards = calloc(1, room->len - room->used + 1);	/* there is room between them */
	b->touched = calloc(1, b->len / 4096 + 1);
	b->end = malloc(p->n * sizeof(*b->end));
	b->boards_len = b->ends = 0;
	return b->code && b->boards && b->touched && b->end ? 0 : -ENOMEM;
}

static int batch_of(struct patch_batch *b, int memory, const struct map *m, const struct plan *p,
		    const struct board_room *room)
{
	const struct source s = { memory, -1 };
	int result = batch_begin(b, m, p, room);

	return result ? result : batch_read(b, &s, m, p);
}

void patch_batch_free(struct patch_batch *b)
{
	free(b->code);
	free(b->boards);
	free(b->touched);
	free(b->end);
}

static void batch_touch(struct patch_batch *b, const uint8_t *at, unsigned len)
{
	MUST(at >= b->code && at + len <= b->code + b->len);
	b->touched[(at - b->code) / 4096] = 1;
	b->touched[(at - b->code + len - 1) / 4096] = 1;
}

/* Puts the mark where the call stands; the plan's word is checked. */
static void batch_mark(struct patch_batch *b, uint8_t *call, uint8_t kind)
{
	static const uint8_t bytes[][2] = {
		[SITE_TRAP] = { 0x0f, 0x05 },  [SITE_BEFORE] = { 0x0f, 0x05 },
		[SITE_AROUND] = { 0x0f, 0x05 }, [SITE_INT80] = { 0xcd, 0x80 },
		[SITE_SYSENTER] = { 0x0f, 0x34 },
	};
	bool compat = kind == SITE_INT80 || kind == SITE_SYSENTER;
	uint16_t mark = compat ? MARK_COMPAT : MARK_SYSCALL;

	MUST(kind < sizeof(bytes) / sizeof(bytes[0]));
	if (memcmp(call, bytes[kind], 2))
		return;
	memcpy(call, &mark, 2);
	batch_touch(b, call, 2);
}

/* An instruction that twins must have in common; the bytes behind tell which. */
static void batch_mark_insn(struct patch_batch *b, uint8_t *insn)
{
	if (insn[0] != 0x0f)
		return;
	insn[0] = MARK_INSN;
	batch_touch(b, insn, 1);
}

/* Adds one site to the batch; false when it is only marked. */
static bool batch_site(struct patch_batch *b, const struct plan_site *s, const struct map *m,
		       uint64_t at, const struct board_room *room)
{
	uint64_t used = room->used + b->boards_len, whole;
	uint8_t *call = b->code + (at - m->start), *window = call - s->before;
	uint8_t jump[SITE_JUMP], *board = b->boards + b->boards_len;
	long size = board_emit(s, window, at, room->at + used, board, room->len - used);

	if (size < 0 || board_jump(s, at, room->at + used, jump))
		return false;
	memcpy(window, jump, SITE_JUMP);
	batch_touch(b, window, SITE_JUMP);
	whole = ((uint64_t)size + BOARD_ALIGN - 1) & ~(uint64_t)(BOARD_ALIGN - 1);
	MUST(size <= BOARD_MAX && used + whole <= room->len);
	b->end[b->ends++] = (uint32_t)b->boards_len + board_resume(s) - 8;
	b->boards_len += whole;
	return true;
}

static int batch_write(const struct patch_batch *b, int memory, const struct map *m,
		       struct board_room *room)
{
	int result = 0;

	MUST(b->boards_len <= room->len - room->used && !b->boards_len == !b->ends);
	if (b->boards_len)
		result = memory_write(memory, room->at + room->used, b->boards, b->boards_len);
	for (uint64_t i = 0; !result && i * 4096 < b->len; i++)
		if (b->touched[i])
			result = memory_write(memory, m->start + i * 4096,
					      b->code + i * 4096, 4096);
	if (!result)
		room->used += b->boards_len;
	return result;
}

/* The bytes at `at` may be a call, or the end of one page and the next's start. */
static void guard_note(struct patch_sum *sum, uint64_t at)
{
	MUST(sum->guards <= SLOT_GUARDS);
	for (uint64_t page = at & ~0xfffull; page <= at + 1; page += 4096) {
		if (sum->guards && sum->guard[sum->guards - 1] == page)
			continue;
		if (sum->guards == SLOT_GUARDS)
			sum->unclean = true;
		else
			sum->guard[sum->guards++] = page;
	}
}

/*
 * A site is patched later only where the call that brought us can go on: behind
 * a call that stays whole, or by the jump when it begins at the call.
 */
static bool patch_fits(const struct plan_site *s, uint64_t only)
{
	return site_is_patched(s) && (!only || s->kind == SITE_BEFORE || !s->before);
}

/*
 * A thread is within where the jump would lie; or, where there are threads, half of it could
 * come to stand there alone: it is written by the page.
 */
static bool is_stood(const struct patch_sum *sum, uint64_t jump)
{
	size_t from = 0, to = sum->stoods;

	while (from < to) {
		size_t half = from + (to - from) / 2;

		if (sum->stood[half] <= jump)
			from = half + 1;
		else
			to = half;
	}
	return sum->stoods && ((from < sum->stoods && sum->stood[from] < jump + SITE_JUMP) ||
			       jump / 4096 != (jump + SITE_JUMP - 1) / 4096);
}

/* Fills the batch from a plan: all sites, or only the one at `only`. */
static void batch_fill(struct patch_batch *b, const struct plan *p, const struct map *m,
		       const struct board_room *room, uint64_t only, struct patch_sum *sum)
{
	uint64_t at;

	for (unsigned i = 0; i < p->n; i++) {
		const struct plan_site *s = &p->sites[i];

		MUST(b->ends <= i);		/* `end` has a row for each site */
		if (!patch_site_in(s, m, &at) || (only && at != only))
			continue;
		if (s->flags & SITE_UNKNOWN) {
			guard_note(sum, at);
			continue;
		}
		if (s->kind == SITE_INSN) {
			/* The vDSO is asked by us, for what the stream tells anyhow. */
			if (sum->twins && !patch_is_vdso(m))
				batch_mark_insn(b, b->code + (at - m->start));
			continue;
		}
		bool jump = room->len && patch_fits(s, only) && !is_stood(sum, at - s->before) &&
			    batch_site(b, s, m, at, room);

		sum->patched += jump;
		sum->trapped += !jump;
		/* Behind a jump that ends before it the call still stands. */
		if (!jump || s->kind == SITE_BEFORE)
			batch_mark(b, b->code + (at - m->start), s->kind);
	}
}

static void sum_add(struct patch_sum *to, const struct patch_sum *one)
{
	to->patched += one->patched;
	to->trapped += one->trapped;
	to->unclean |= one->unclean;
	for (unsigned i = 0; i < one->guards; i++)
		guard_note(to, one->guard[i]);
}

/* As it was done before, or anew. */
static int plan_apply(struct plan *p, pid_t pid, int memory, const struct map *m,
		      struct board_room *room, struct patch_sum *one, struct shelf_view *shelf)
{
	struct patch_batch b;
	int result = !p->n ? 0 : one->stoods ? -ENOENT :
		     patched_again(p, pid, memory, m, room, one, shelf);

	if (result != -ENOENT)
		return result;
	result = batch_of(&b, memory, m, p, room);
	if (!result) {
		batch_fill(&b, p, m, room, 0, one);
		result = batch_write(&b, memory, m, room);
	}
	patch_batch_free(&b);
	return result;
}

/* The first bytes of what is to be marked, which go to `is`; how many. */
static unsigned marks_find(const struct map *m, const struct plan *p, struct memory_part *part,
			   uint8_t *is)
{
	unsigned n = 0;
	uint64_t at;

	for (unsigned i = 0; i < p->n && !patch_is_vdso(m); i++) {
		if (p->sites[i].kind != SITE_INSN || !patch_site_in(&p->sites[i], m, &at))
			continue;
		part[n] = (struct memory_part){ at, &is[n], 1 };
		n++;
	}
	return n;
}

/* Those that are as they were planned become marks. */
static unsigned marks_make(struct memory_part *part, unsigned n)
{
	static uint8_t mark = MARK_INSN;
	unsigned left = 0;

	for (unsigned i = 0; i < n; i++)
		if (*(const uint8_t *)part[i].bytes == 0x0f)
			part[left++] = (struct memory_part){ part[i].at, &mark, 1 };
	return left;
}

/* One byte each: no thread can stand within. */
void patch_marks(int memory, const struct map *m, const struct plan *p)
{
	struct memory_part *part = calloc(p->n + 1, sizeof(*part));
	uint8_t *is = calloc(p->n + 1, 1);
	unsigned n = part && is ? marks_find(m, p, part, is) : 0;

	if (n && !memory_read_parts(memory, part, n)) {
		n = marks_make(part, n);
		if (n)
			memory_write_parts(memory, part, n);
	}
	free(part);
	free(is);
}

int patch_copy(struct plan *p, int fd, const struct map *m, const struct board_room *room,
	       bool whole, struct patch_batch *b, struct patch_sum *sum)
{
	const struct source s = { -1, fd };
	int result = batch_begin(b, m, p, room);

	MUST((fd >= 0) != patch_is_vdso(m));
	if (!result && fd < 0 && p != vdso.plan)
		result = -ESTALE;
	if (!result)
		result = whole ? source_read(&s, m, 0, b->code, b->len) : batch_read(b, &s, m, p);
	if (!result)
		batch_fill(b, p, m, room, 0, sum);
	return result;
}

void patch_planned(pid_t pid, int memory, const struct map *m, struct plan *p,
		   struct board_room *room, struct patch_sum *sum, struct shelf_view *shelf)
{
	struct patch_sum one = { .twins = sum->twins, .stood = sum->stood,
				 .stoods = sum->stoods };
	int result;

	sum->vsyscall |= p->vsyscall;
	result = plan_apply(p, pid, memory, m, room, &one, shelf);
	if (result)
		sum->unclean = true;
	else
		sum_add(sum, &one);
	say_log("patch", "%d: %s: %u patched, %u left to the net, %u unknown: %s", pid, m->path,
		one.patched, one.trapped, p->unknown_pairs, strerror(-result));
}

/* The mapping with the site's call as the file has it. */
static int batch_unmark(struct patch_batch *b, const struct map *m, uint64_t site)
{
	uint16_t mark = MARK_SYSCALL;
	uint8_t *call = b->code + (site - m->start);

	if (site + 2 > m->end || memcmp(call, &mark, 2))
		return -EINVAL;
	memcpy(call, (const uint8_t[]){ 0x0f, 0x05 }, 2);
	return 0;
}

static int site_patch_in(pid_t pid, int memory, const struct map *m, uint64_t site,
			 struct board_room *room)
{
	struct patch_sum one = { 0 };
	struct patch_batch b = { 0 };
	struct plan *p;
	int result = patch_plan(pid, memory, m, &p);

	if (result)
		return result;
	result = batch_of(&b, memory, m, p, room);
	if (!result)
		result = batch_unmark(&b, m, site);
	if (!result)
		batch_fill(&b, p, m, room, site, &one);
	if (!result && one.patched)
		result = batch_write(&b, memory, m, room);
	patch_batch_free(&b);
	plan_free(p);
	return result ? result : one.patched ? 0 : -ENOENT;
}

int patch_site(pid_t pid, int memory, uint64_t site, struct board_room *room)
{
	struct maps maps;
	int result = maps_read(pid, &maps);

	for (size_t i = 0; !result && i < maps.n; i++)
		if (maps.map[i].exec && maps.map[i].start <= site && site < maps.map[i].end) {
			result = site_patch_in(pid, memory, &maps.map[i], site, room);
			break;
		}
	maps_free(&maps);
	return result;
}
