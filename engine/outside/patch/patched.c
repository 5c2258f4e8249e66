/*
 * What patching a mapping came to, kept: a server that starts a program for each request
 * has the same libraries mapped each time, at the same distance from the boards.  Then the
 * same bytes are written again, and nothing of the mapping is read or decoded.
 *
 * An entry is good for one plan (it holds a reference, so the plan stays the same), one
 * part of its file, and one distance.  What was made of a mapping with pages to be watched
 * is not kept: those are told by address.
 *
 * At its second use what has many pages gets a part of the shelf (shelf.h), made of the file:
 * what one process had in its memory is no other's code.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/outside/patch/shelf.h"
#include "engine/outside/kernel/remote.h"
#include "engine/outside/patch/patched.h"

#define KEPT_MAX	32	/* mappings; the one that was used longest ago goes */
#define PAGE		4096ull
#define PART_PAGES	4		/* with fewer to be written they are */
#define PART_MAX	(8ull << 20)

struct kept_map {
	struct plan *plan;	/* NULL: free */
	uint64_t offset, len, distance, room;
	bool twins;
	unsigned long used;
	struct patch_sum sum;
	uint64_t boards_len, pages;
	uint32_t *page, *end;
	unsigned ends;
	uint8_t *boards, *bytes;	/* in the boards, addresses count from the mapping */
	bool again;		/* it has been used again: it has a part, or never gets one */
	unsigned part;		/* of the shelf; or SHELF_NONE */
};

static struct kept_map all_kept[KEPT_MAX];
static unsigned long uses;

/* Of no room there is no distance: everything is marked. */
static uint64_t distance(const struct map *m, const struct board_room *room)
{
	return room->len ? room->at + room->used - m->start : 0;
}

static struct kept_map *find(const struct plan *p, const struct map *m,
			     const struct board_room *room, bool twins)
{
	for (unsigned i = 0; i < KEPT_MAX; i++) {
		struct kept_map *k = &all_kept[i];

		if (k->plan == p && k->offset == m->offset && k->len == m->end - m->start &&
		    k->distance == distance(m, room) && k->room == room->len - room->used &&
		    k->twins == twins)
			return k;
	}
	return NULL;
}

/* The addresses that boards hold, moved by so much. */
static void boards_move(struct kept_map *k, uint64_t by)
{
	uint64_t at;

	for (unsigned i = 0; i < k->ends; i++) {
		MUST(k->end[i] + sizeof(at) <= k->boards_len);
		memcpy(&at, k->boards + k->end[i], sizeof(at));
		at += by;
		memcpy(k->boards + k->end[i], &at, sizeof(at));
	}
}

static int boards_write(struct kept_map *k, int memory, uint64_t start, uint64_t to)
{
	int result;

	if (!k->boards_len)
		return 0;
	boards_move(k, start);
	result = memory_write(memory, to, k->boards, k->boards_len);
	boards_move(k, -start);
	return result;
}

/* Pages that follow each other are written together. */
static int pages_write(const struct kept_map *k, int memory, uint64_t start)
{
	int result = 0;

	for (uint64_t i = 0, n; !result && i < k->pages; i += n) {
		for (n = 1; i + n < k->pages && k->page[i + n] == k->page[i] + n; )
			n++;
		result = memory_write(memory, start + k->page[i] * PAGE, k->bytes + i * PAGE,
				      n * PAGE);
	}
	return result;
}

/* --- a part of the shelf ---------------------------------------------------------------- */

/* The mapping's file, if it is the plan's, and if others may read it as we do. */
static int file_open(struct plan *p, pid_t pid, const struct map *m, struct stat *st)
{
	int fd = patch_open(pid, m);
	struct plan *known;
	bool same;

	if (fd < 0)
		return fd;
	same = !fstat(fd, st) && st->st_mode & S_IROTH && !plan_known(st, &known);
	if (same) {
		same = known == p;
		plan_free(known);
	}
	if (same)
		return fd;
	close(fd);
	return -ESTALE;
}

/* Its boards are those that are kept, and the file has not changed meanwhile. */
static bool part_fill(struct kept_map *k, int fd, const struct stat *st, const struct map *m,
		      const struct board_room *room, uint8_t *code)
{
	uint8_t *boards = calloc(1, room->len - room->used + 1);
	int64_t len = boards ? patch_copy(k->plan, fd, m, room, k->twins, code, boards) : -1;
	struct stat after;
	bool same;

	boards_move(k, m->start);
	same = len == (int64_t)k->boards_len && !memcmp(boards, k->boards, k->boards_len);
	boards_move(k, -m->start);
	free(boards);
	return same && !fstat(fd, &after) && plan_same_file(st, &after);
}

static void part_make(struct kept_map *k, pid_t pid, const struct map *m,
		      const struct board_room *room)
{
	uint8_t *code = NULL, *to;
	struct stat st;
	int fd;

	k->again = true;
	if (k->pages < PART_PAGES || k->len > PART_MAX || !m->inode || m->shared || m->shelved)
		return;
	fd = file_open(k->plan, pid, m, &st);
	if (fd < 0)
		return;
	code = malloc(k->len);
	if (code && part_fill(k, fd, &st, m, room, code))
		k->part = shelf_add(m, &to);
	if (k->part != SHELF_NONE)
		memcpy(to, code, k->len);
	free(code);
	close(fd);
}

/* The process has it mapped, and has not moved it yet. */
static bool part_move(const struct kept_map *k, const struct map *m, struct shelf_view *shelf)
{
	const struct shelf_part *p;

	if (!shelf || k->part == SHELF_NONE || shelf->moves == SHELF_MOVES ||
	    shelf->moved >> k->part & 1)
		return false;
	p = shelf_part(k->part);
	if (p->at + p->len > shelf->len)
		return false;
	MUST(p->len == m->end - m->start);
	shelf->moved |= 1ull << k->part;
	shelf->move[shelf->moves++] = (struct code_move){ p->at, m->start, p->len };
	return true;
}

int patched_again(struct plan *p, pid_t pid, int memory, const struct map *m,
		  struct board_room *room, struct patch_sum *sum, struct shelf_view *shelf)
{
	struct kept_map *k = find(p, m, room, sum->twins);
	int result;

	if (!k)
		return -ENOENT;
	MUST(k->boards_len <= room->len - room->used && !k->sum.guards && !k->sum.unclean);
	k->used = ++uses;
	if (!k->again)
		part_make(k, pid, m, room);
	result = boards_write(k, memory, m->start, room->at + room->used);
	if (!result && !part_move(k, m, shelf))
		result = pages_write(k, memory, m->start);
	if (!result) {
		room->used += k->boards_len;
		*sum = k->sum;
	}
	return result;
}

/* --- keeping it ------------------------------------------------------------------------- */

static void forget(struct kept_map *k)
{
	plan_free(k->plan);
	free(k->page);
	free(k->end);
	free(k->boards);
	free(k->bytes);
	*k = (struct kept_map){ 0 };
}

static struct kept_map *oldest(void)
{
	struct kept_map *old = &all_kept[0];

	for (unsigned i = 1; i < KEPT_MAX; i++)
		if (all_kept[i].used < old->used)
			old = &all_kept[i];
	return old;
}

static bool pages_keep(struct kept_map *k, const struct patched *now)
{
	uint64_t all = k->len / PAGE;

	for (uint64_t i = 0; i < all; i++)
		k->pages += now->touched[i] != 0;
	k->page = malloc((k->pages + 1) * sizeof(*k->page));
	k->bytes = malloc(k->pages * PAGE + 1);
	k->boards = malloc(now->boards_len + 1);
	k->end = malloc((now->ends + 1) * sizeof(*k->end));
	if (!k->page || !k->bytes || !k->boards || !k->end)
		return false;
	k->ends = now->ends;
	memcpy(k->end, now->end, k->ends * sizeof(*k->end));
	memcpy(k->boards, now->boards, now->boards_len);
	for (uint64_t i = 0, n = 0; i < all; i++) {
		if (!now->touched[i])
			continue;
		MUST(n < k->pages);
		memcpy(k->bytes + n * PAGE, now->code + i * PAGE, PAGE);
		k->page[n++] = (uint32_t)i;
	}
	return true;
}

void patched_keep(struct plan *p, const struct map *m, const struct board_room *before,
		  const struct patched *now, const struct patch_sum *sum)
{
	struct kept_map *k;

	if (sum->guards || sum->unclean)
		return;
	MUST(!find(p, m, before, sum->twins));	/* it would have been written again */
	k = oldest();
	forget(k);
	k->offset = m->offset;
	k->len = m->end - m->start;
	k->distance = distance(m, before);
	k->room = before->len - before->used;
	k->twins = sum->twins;
	k->sum = *sum;
	k->boards_len = now->boards_len;
	k->used = ++uses;
	k->part = SHELF_NONE;
	if (!pages_keep(k, now)) {
		forget(k);
		return;
	}
	boards_move(k, -m->start);
	plan_ref(p);
	k->plan = p;
}
