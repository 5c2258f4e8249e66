/*
 * From a plan of hooks to hooked code: the entry boards first, then the jumps to
 * them.  A function whose first bytes are not what its file says is left alone.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/outside/follow/runtime.h"
#include "engine/outside/kernel/remote.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/patch/board.h"
#include "engine/outside/patch/hook.h"
#include "engine/outside/patch/mapped.h"
#include "engine/outside/patch/patch.h"
#include "engine/outside/patch/planner.h"

#define CACHE_MAX	32
#define HOOK_REACH	160	/* bytes around a function's start that may change */

bool hook_is_library(const char *path)
{
	static const char *const names[] = { "libc.so.6", "libc-2.", "libpthread.so.0",
					     "libpthread-2.", "libstdc++.so.6" };
	const char *base = strrchr(path, '/');

	for (size_t i = 0; base && i < sizeof(names) / sizeof(names[0]); i++)
		if (!strncmp(base + 1, names[i], strlen(names[i])))
			return true;
	return runtime_is_library(path);
}

/* --- plans, kept by the identity of the file -------------------------------------- */

static struct {
	struct stat st;
	struct hook_plan plan;
} cache[CACHE_MAX];
static unsigned cached;

void hook_log(const char *path, const struct hook_plan *p)
{
	for (unsigned i = 0; i < p->n; i++)
		if (p->hook[i].why)
			say_log("hook", "%s: %s is left alone: %s", path, p->hook[i].name,
				p->hook[i].why);
}

static const struct hook_plan *known(const struct stat *st)
{
	for (unsigned i = 0; i < cached && i < CACHE_MAX; i++)
		if (plan_same_file(&cache[i].st, st))
			return &cache[i].plan;
	return NULL;
}

void hook_learn(const struct stat *st, const struct hook_plan *p)
{
	unsigned i = cached++ % CACHE_MAX;

	MUST(hook_plan_fits(p));
	cache[i].st = *st;
	cache[i].plan = *p;
}

/* Who was not to wait for a planner plans here, if that does not wait, either. */
static const struct hook_plan *plan_of(const struct near_file *f, const char *path,
				       bool is_static)
{
	static struct hook_plan made;
	int fd;

	if (known(&f->st) || f->far)
		return known(&f->st);
	fd = near_read(f->fd);
	if (fd < 0 || hook_plan_file(fd, is_static ? HOOKS_STATIC : HOOKS_DYNAMIC, &made))
		made.n = 0;
	if (fd >= 0)
		close(fd);
	hook_log(path, &made);
	hook_learn(&f->st, &made);
	return known(&f->st);
}

/* Whether there may be something to hook. */
static bool is_hooked(const struct map *m, enum hook_file file)
{
	return m->inode && !m->shared && (file != HOOK_LIBRARY || hook_is_library(m->path));
}

bool hook_planned(pid_t pid, const struct map *m, enum hook_file file)
{
	struct near_file f;
	int result = is_hooked(m, file) ? mapped_find(pid, m, &f) : -ENOENT;
	bool planned;

	if (result)
		return result != -EAGAIN;
	planned = known(&f.st) ||
		  !planner_hooks(&f, file == HOOK_LIBRARY ? HOOKS_DYNAMIC : HOOKS_STATIC);
	near_close(&f);
	return planned;
}

/* --- one mapping ------------------------------------------------------------------- */

/* What stands there. */
struct hook_seen {
	uint8_t bytes[HOOK_BYTES_MAX], pad[HOOK_JUMP];
};

/* What is to be written, one after the other: a board before the jump to it. */
struct hook_writes {
	unsigned n;
	size_t used;
	struct memory_part part[3 * HOOKS_MAX];
	uint8_t bytes[HOOKS_MAX * (HOOK_BOARD_MAX + HOOK_JUMP + HOOK_SHORT)];
};

struct hooking {
	const struct hook_plan *plan;
	const struct map *map;
	struct board_room *room;
	int memory;
	uint64_t bias;		/* from the file's addresses to the process' */
	uint64_t relock;	/* pthread_mutex_lock without its hook */
	bool wakes;		/* see wakes_hooked */
	unsigned done;
	bool runtime;		/* of a sanitizer */
	struct hook_seen *seen;	/* for each of the plan's */
	struct hook_writes *writes;
};

static bool in_map(const struct hook *h, const struct map *m)
{
	uint64_t at = h->offset - m->offset, len = m->end - m->start;

	/* With a little around it, for the padding. */
	return at >= HOOK_REACH && len >= 2 * HOOK_REACH && at <= len - HOOK_REACH;
}

static bool is_as_planned(const struct hooking *k, const struct hook *h)
{
	const struct hook_seen *seen = &k->seen[h - k->plan->hook];

	MUST(h >= k->plan->hook && h < k->plan->hook + k->plan->n);
	return !memcmp(seen->bytes, h->bytes, h->len) &&
	       (!h->pad || !memcmp(seen->pad, h->pad_bytes, HOOK_JUMP));
}

static void write_later(const struct hooking *k, uint64_t at, const uint8_t *bytes, size_t len)
{
	struct hook_writes *w = k->writes;

	MUST(w->n < 3 * HOOKS_MAX && len <= sizeof(w->bytes) - w->used);
	w->part[w->n++] = (struct memory_part){ at, w->bytes + w->used, len };
	memcpy(w->bytes + w->used, bytes, len);
	w->used += len;
}

/* The jump, and where it stands in padding, then a short one to it. */
static int jump_write(const struct hooking *k, const struct hook *h, uint64_t at,
		      uint64_t board)
{
	uint64_t to = h->pad ? h->pad + k->bias : at;
	uint8_t jump[HOOK_JUMP], to_pad[HOOK_SHORT] = { 0xeb, (uint8_t)(to - at - HOOK_SHORT) };
	int result = hook_jump(to, board, jump);

	if (!result)
		patch_keep_bytes(k->map, to, h->pad ? h->pad_bytes : h->bytes, sizeof(jump));
	if (!result && h->pad)
		patch_keep_bytes(k->map, at, h->bytes, sizeof(to_pad));
	if (!result)
		write_later(k, to, jump, sizeof(jump));
	if (!result && h->pad)
		write_later(k, at, to_pad, sizeof(to_pad));
	return result;
}

/* Waits are told by `error` whether all that ends them is hooked. */
static bool wakes_hooked(const struct hook_plan *p)
{
	bool one = false, all = false;

	for (unsigned i = 0; i < p->n; i++) {
		one |= p->hook[i].kind == LOCK_COND_SIGNAL && !p->hook[i].why;
		all |= p->hook[i].kind == LOCK_COND_BROADCAST && !p->hook[i].why;
	}
	return one && all;
}

static bool is_wait(const struct hook *h)
{
	return h->kind > LOCK_ONCE_LAST && h->kind <= LOCK_COND_LAST;
}

/* What the board's `error` says, see abi/locks.h. */
static uint64_t helper_error(const struct hooking *k, const struct hook *h)
{
	if (h->sets_errno)
		return k->plan->error + k->bias;
	return h->kind <= LOCK_ONCE_LAST ? k->runtime : is_wait(h) && k->wakes;
}

static int hook_write(struct hooking *k, const struct hook *h, uint64_t at)
{
	uint64_t board = k->room->at + k->room->used, undo = k->plan->undo[h->kind];
	uint64_t helper[3] = { k->relock, undo ? undo + k->bias : 0, helper_error(k, h) };
	uint64_t left = k->room->len - k->room->used;
	uint8_t code[HOOK_BOARD_MAX];
	int result;
	long size;

	MUST(board_room_fits(k->room) && h->kind < LOCK_KINDS && h->len <= sizeof(h->bytes));
	if (!is_as_planned(k, h))
		return -EBADMSG;
	size = hook_emit(h, at, board, helper, code, left < sizeof(code) ? left : sizeof(code));
	if (size < 0)
		return (int)size;
	write_later(k, board, code, (size_t)size);
	result = jump_write(k, h, at, board);
	if (result)
		return result;
	if (h->kind == LOCK_MUTEX_LOCK && !k->done)
		k->relock = board + HOOK_ORIGINAL;
	k->room->used += ((uint64_t)size + BOARD_ALIGN - 1) & ~(uint64_t)(BOARD_ALIGN - 1);
	MUST(k->room->used <= k->room->len);
	k->done++;
	return 0;
}

static uint64_t address_of(const struct hooking *k, const struct hook *h)
{
	return k->map->start + (h->offset - k->map->offset);
}

/*
 * What the program locks by a sanitizer's interceptors comes to libc's functions in
 * the end; but for what runs once TSan has code of its own.
 */
static bool is_wanted(const struct hooking *k, const struct hook *h)
{
	return !h->why && in_map(h, k->map) && (!k->runtime || h->kind <= LOCK_ONCE_LAST);
}

static void hook_one(struct hooking *k, const struct hook *h)
{
	uint64_t at = address_of(k, h);
	int result;

	if (!is_wanted(k, h))
		return;
	MUST(at >= k->map->start && at < k->map->end);
	k->bias = at - h->at;
	result = hook_write(k, h, at);
	if (result)
		say_log("hook", "%s: %s is left alone: %s", k->map->path, h->name,
			strerror(-result));
}

bool hook_holds(pid_t pid, const struct map *m, enum hook_file file, uint64_t at)
{
	struct hooking k = { .map = m };
	struct near_file f;
	bool holds = false;

	if (!is_hooked(m, file) || mapped_find(pid, m, &f))
		return false;
	k.plan = plan_of(&f, m->path, file != HOOK_LIBRARY);
	for (unsigned i = 0; k.plan && i < k.plan->n; i++) {
		const struct hook *h = &k.plan->hook[i];
		uint64_t from = address_of(&k, h);

		/* At its first byte a thread finds the jump. */
		holds |= is_wanted(&k, h) && at > from && at < from + h->len;
	}
	near_close(&f);
	return holds;
}

/* All that it will be compared with. */
static int seen_read(const struct hooking *k)
{
	struct memory_part part[2 * HOOKS_MAX];
	unsigned n = 0;

	for (unsigned i = 0; i < k->plan->n; i++) {
		const struct hook *h = &k->plan->hook[i];
		uint64_t at = address_of(k, h);

		if (!is_wanted(k, h))
			continue;
		part[n++] = (struct memory_part){ at, k->seen[i].bytes, h->len };
		if (h->pad)
			part[n++] = (struct memory_part){ h->pad + at - h->at, k->seen[i].pad,
							  HOOK_JUMP };
	}
	return n ? memory_read_parts(k->memory, part, n) : -ENOENT;
}

/* pthread_mutex_lock first: the waits need what it is without its hook. */
static void hooks_prepare(struct hooking *k)
{
	const struct hook_plan *p = k->plan;

	k->wakes = wakes_hooked(p);
	for (unsigned i = 0; i < p->n; i++) {
		const struct hook *h = &p->hook[i];

		if (h->kind == LOCK_MUTEX_LOCK && !k->relock)
			k->relock = address_of(k, h);
		if (h->kind == LOCK_MUTEX_LOCK)
			hook_one(k, h);
	}
	for (unsigned i = 0; i < p->n; i++)
		if (p->hook[i].kind != LOCK_MUTEX_LOCK)
			hook_one(k, &p->hook[i]);
}

/* Its memory is read once and written once: its threads may stand meanwhile. */
static void hook_all(struct hooking *k)
{
	static struct hook_seen seen[HOOKS_MAX];
	static struct hook_writes writes;
	int result;

	MUST(k->plan->n <= HOOKS_MAX);
	k->seen = seen;
	k->writes = &writes;
	writes.n = 0;
	writes.used = 0;
	result = seen_read(k);
	if (!result)
		hooks_prepare(k);
	if (!result && writes.n)
		result = memory_write_parts(k->memory, writes.part, writes.n);
	if (result)
		k->done = 0;
	if (result && result != -ENOENT)
		say_log("hook", "%s: nothing is hooked: %s", k->map->path, strerror(-result));
}

/* One function of the program; it is planned anew each time, which is once for each program. */
void hook_function(pid_t pid, int memory, const struct map *m, const char *name,
		   struct board_room *room)
{
	static struct hook_plan p;
	struct hooking k = { .plan = &p, .map = m, .room = room, .memory = memory };
	int fd = m->inode && !m->shared ? patch_open(pid, m) : -1;

	MUST(board_room_fits(room));
	if (fd < 0)
		return;
	p.n = !hook_plan_function(fd, name, &p.hook[0]);
	if (p.n)
		hook_all(&k);
	close(fd);
	say_log("hook", "%d: %s: %s: %s", pid, m->path, name, k.done ? "hooked" : "not hooked");
}

void hook_map(pid_t pid, int memory, const struct map *m, enum hook_file file,
	      struct board_room *room)
{
	struct hooking k = { .map = m, .room = room, .memory = memory,
			     .runtime = file == HOOK_RUNTIME || runtime_is_library(m->path) };
	struct near_file f;

	MUST(board_room_fits(room));
	if (!is_hooked(m, file) || mapped_find(pid, m, &f))
		return;
	k.plan = plan_of(&f, m->path, file != HOOK_LIBRARY);
	if (k.plan && k.plan->n)
		hook_all(&k);
	near_close(&f);
	say_log("hook", "%d: %s: %u functions hooked", pid, m->path, k.done);
}
