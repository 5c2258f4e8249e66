/*
 * Back to what was there before it was patched.  A program that mve came to may have been
 * installed anew meanwhile, or see other files than we do: so what its code was is kept when
 * it is patched, as far as that changes it.  What was patched without is read from the file.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/outside/patch/hook.h"
#include "engine/outside/patch/patch.h"
#include "engine/outside/plan/plan.h"
#include "engine/outside/session/memory.h"

/* Ours is the same as any other process'. */
static int vdso_undo(int memory, const struct map *m)
{
	const uint8_t *own = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
	uint8_t now[4096];
	int result = own ? 0 : -ENOENT;

	for (uint64_t at = m->start; !result && at < m->end; at += sizeof(now)) {
		const uint8_t *was = own + (at - m->start);

		result = memory_read(memory, at, now, sizeof(now));
		if (!result && memcmp(was, now, sizeof(now)))
			result = memory_write(memory, at, was, sizeof(now));
	}
	return result;
}

/*
 * A stretch of sites, in the file and in memory: a server stands while all that was patched is
 * put back, and a look at each site would be thousands of calls.
 */
#define STRETCH		4096

struct stretch {
	uint64_t from, len;	/* in memory */
	uint64_t first, behind;	/* of what differs, from `from` on; equal: nothing */
	uint8_t was[STRETCH + SITE_WINDOW_MAX], now[STRETCH + SITE_WINDOW_MAX];
};

/* The sites from `first` on that lie in one; the next behind them. */
static unsigned stretch_find(struct stretch *t, const struct plan *p, const struct map *m,
			     unsigned first)
{
	uint64_t at;
	unsigned i = first;

	for (t->len = 0; i < p->n; i++) {
		const struct plan_site *s = &p->sites[i];
		bool in = patch_site_in(s, m, &at);

		if (in && !t->len)
			t->from = at - s->before;
		if (in && (at - s->before < t->from || at - s->before - t->from >= STRETCH))
			break;
		if (in && t->len < at - s->before - t->from + site_window(s))
			t->len = at - s->before - t->from + site_window(s);
	}
	MUST(t->len <= sizeof(t->was));
	return i;
}

static void site_undo(struct stretch *t, uint64_t from, uint64_t len)
{
	MUST(from <= t->len && len <= t->len - from);
	if (!memcmp(t->was + from, t->now + from, len))
		return;
	memcpy(t->now + from, t->was + from, len);
	t->first = t->behind && t->first < from ? t->first : from;
	t->behind = t->behind > from + len ? t->behind : from + len;
}

/* --- what is kept ------------------------------------------------------------------------ */

/* Of a stretch of a file: the bytes of its sites' windows, one behind the other. */
struct kept {
	struct kept *next;
	struct map map;
	struct plan *plan;
	uint8_t *window;
};

static struct kept *kept;

static struct kept *kept_find(const struct map *m)
{
	struct kept *k = kept;

	while (k && (k->map.dev != m->dev || k->map.inode != m->inode ||
		     k->map.offset != m->offset || k->map.end - k->map.start != m->end - m->start))
		k = k->next;
	return k;
}

static uint64_t windows_len(const struct plan *p, const struct map *m)
{
	uint64_t len = 0, at;

	for (unsigned i = 0; i < p->n; i++)
		if (patch_site_in(&p->sites[i], m, &at))
			len += site_window(&p->sites[i]);
	return len;
}

static int windows_read(struct kept *k, int memory)
{
	const struct plan *p = k->plan;
	uint8_t *to = k->window;
	static struct stretch t;
	unsigned next;
	int result = 0;
	uint64_t at;

	for (unsigned i = 0; i < p->n && !result; i = next) {
		next = stretch_find(&t, p, &k->map, i);
		if (t.len)
			result = memory_read(memory, t.from, t.was, t.len);
		for (; i < next && !result; i++)
			if (patch_site_in(&p->sites[i], &k->map, &at)) {
				memcpy(to, t.was + (at - p->sites[i].before - t.from),
				       site_window(&p->sites[i]));
				to += site_window(&p->sites[i]);
			}
	}
	return result;
}

int patch_keep(pid_t pid, int memory, const struct map *m)
{
	struct kept *k;
	struct plan *p;
	int result;

	if (patch_is_vdso(m) || kept_find(m) || patch_plan(pid, memory, m, &p))
		return 0;
	k = calloc(1, sizeof(*k));
	MUST(k);
	*k = (struct kept){ kept, *m, p, malloc(windows_len(p, m) + 1) };
	MUST(k->window);
	result = windows_read(k, memory);
	if (!result) {
		kept = k;
		return 0;
	}
	plan_free(p);
	free(k->window);
	free(k);
	return result;
}

bool patch_kept(const struct map *m)
{
	return kept_find(m);
}

/* Beside sites, what is led elsewhere (hook.c): the bytes that a jump lies over. */
struct kept_bytes {
	struct kept_bytes *next;
	dev_t dev;
	uint64_t inode, offset;
	unsigned len;
	uint8_t was[HOOK_JUMP];
};

static struct kept_bytes *bytes_kept;
static bool keeps;

void patch_keeps(void)
{
	keeps = true;
}

static bool bytes_are_of(const struct kept_bytes *k, const struct map *m)
{
	return k->inode == m->inode && k->dev == m->dev && k->offset >= m->offset &&
	       k->offset - m->offset + k->len <= m->end - m->start;
}

void patch_keep_bytes(const struct map *m, uint64_t at, const uint8_t *was, unsigned len)
{
	uint64_t offset = at - m->start + m->offset;
	struct kept_bytes *k = bytes_kept;

	MUST(len <= HOOK_JUMP && at >= m->start && at + len <= m->end);
	while (k && !(bytes_are_of(k, m) && k->offset == offset))
		k = k->next;
	if (k || !keeps)
		return;
	k = calloc(1, sizeof(*k));
	MUST(k);
	*k = (struct kept_bytes){ bytes_kept, m->dev, m->inode, offset, len, { 0 } };
	memcpy(k->was, was, len);
	bytes_kept = k;
}

static int bytes_undo(int memory, const struct map *m)
{
	uint8_t now[HOOK_JUMP];
	int result = 0;

	for (const struct kept_bytes *k = bytes_kept; k && !result; k = k->next) {
		uint64_t at = m->start + (k->offset - m->offset);

		if (!bytes_are_of(k, m))
			continue;
		result = memory_read(memory, at, now, k->len);
		if (!result && memcmp(now, k->was, k->len))
			result = memory_write(memory, at, k->was, k->len);
	}
	return result;
}

/* --- and back ------------------------------------------------------------------------------ */

/* Where the bytes are that were there: kept, the next of them; or in the file. */
struct origin {
	const uint8_t *window;
	int fd;
};

static int origin_read(const struct origin *o, struct stretch *t, const struct map *m)
{
	return o->window ? 0 : patch_file_read(o->fd, m->offset + (t->from - m->start), t->was,
					       t->len);
}

/* The bytes of its sites, as they were; what lies between is as it is. */
static int stretch_undo(struct stretch *t, int memory, const struct map *m, const struct plan *p,
			unsigned first, unsigned behind, struct origin *o)
{
	int result = origin_read(o, t, m);
	uint64_t at;

	if (!result)
		result = memory_read(memory, t->from, t->now, t->len);
	if (result)
		return result;
	t->first = t->behind = 0;
	for (unsigned i = first; i < behind; i++) {
		unsigned len = site_window(&p->sites[i]);

		if (!patch_site_in(&p->sites[i], m, &at))
			continue;
		at -= p->sites[i].before + t->from;
		if (o->window) {
			memcpy(t->was + at, o->window, len);
			o->window += len;
		}
		site_undo(t, at, len);
	}
	return t->behind ? memory_write(memory, t->from + t->first, t->now + t->first,
					t->behind - t->first) : 0;
}

static int sites_undo(int memory, const struct map *m, const struct plan *p, struct origin o)
{
	static struct stretch t;
	unsigned next;
	int result = 0;

	for (unsigned i = 0; !result && i < p->n; i = next) {
		next = stretch_find(&t, p, m, i);
		if (t.len)
			result = stretch_undo(&t, memory, m, p, i, next, &o);
	}
	return result;
}

static int undo_by_file(pid_t pid, int memory, const struct map *m)
{
	struct plan *p;
	int result = patch_plan(pid, memory, m, &p), fd;

	if (result)
		return result == -ENOENT ? 0 : result;
	fd = patch_open(pid, m);
	result = fd < 0 ? fd : sites_undo(memory, m, p, (struct origin){ NULL, fd });
	if (fd >= 0)
		close(fd);
	plan_free(p);
	return result;
}

int patch_undo(pid_t pid, int memory, const struct map *m)
{
	const struct kept *k = kept_find(m);
	int result;

	if (patch_is_vdso(m))
		return vdso_undo(memory, m);
	result = bytes_undo(memory, m);
	if (result)
		return result;
	if (!k)
		return undo_by_file(pid, memory, m);
	return sites_undo(memory, m, k->plan, (struct origin){ k->window, -1 });
}
