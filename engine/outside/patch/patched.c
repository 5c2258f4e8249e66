/*
 * What patching a mapping comes to, kept: a server that starts a program for each request
 * has the same libraries mapped each time, at the same distance from the boards.  Then the
 * same bytes are written again, and nothing of the mapping is read or decoded.
 *
 * An entry is good for one plan (it holds a reference, so the plan stays the same), one
 * part of its file, and one distance.  It is made of the file alone: what one process had in
 * its memory, which it and others of its user could write, is no other's code.  What has pages
 * to be watched is not made: those are told by address.
 *
 * What has many pages lies on the shelf (shelf.h), where a process has that mapped, from the
 * first use on: a server that forks has no page of it copied then, nor a table of pages.  Where
 * it is to be written it is made at its second use, which may never come.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/outside/patch/shelf.h"
#include "engine/outside/kernel/remote.h"
#include "engine/outside/patch/patched.h"
#include "engine/outside/session/near.h"

/* Mappings; of those that are not on the shelf the one that was used longest ago goes. */
#define KEPT_MAX	(SHELF_PARTS + 32)
#define PAGE		4096ull
#define PAGES_EACH	128		/* are written at one go */
#define PART_PAGES	4		/* with fewer to be written they are */
#define PART_MAX	(8ull << 20)

struct kept_map {
	struct plan *plan;	/* NULL: free */
	uint64_t offset, len, distance, room;
	bool twins;
	unsigned long used;
	bool met;		/* it is made, or never will be */
	bool made;
	struct patch_sum sum;
	uint64_t boards_len, pages;
	uint32_t *page, *end;
	unsigned ends;
	uint8_t *boards;	/* addresses in it count from the mapping */
	uint8_t *bytes;		/* of the pages; NULL: they are in `code`, */
	uint8_t *code;		/* the whole mapping's on the shelf, */
	unsigned part;		/* of which this is its part; or SHELF_NONE */
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

static uint8_t *page_bytes(const struct kept_map *k, uint64_t i)
{
	return k->bytes ? k->bytes + i * PAGE : k->code + k->page[i] * PAGE;
}

/* Pages that follow each other are one part. */
static unsigned parts_of(const struct kept_map *k, uint64_t start, uint64_t from, uint64_t to,
			 struct memory_part *part)
{
	unsigned n = 0;

	MUST(to <= k->pages && to - from <= PAGES_EACH);
	for (uint64_t i = from; i < to; i++) {
		uint64_t at = start + k->page[i] * PAGE;

		if (n && part[n - 1].at + part[n - 1].len == at)
			part[n - 1].len += PAGE;
		else
			part[n++] = (struct memory_part){ at, page_bytes(k, i), PAGE };
	}
	return n;
}

static int pages_write(const struct kept_map *k, int memory, uint64_t start)
{
	struct memory_part part[PAGES_EACH];
	int result = 0;

	for (uint64_t i = 0, to; !result && i < k->pages; i = to) {
		to = k->pages - i < PAGES_EACH ? k->pages : i + PAGES_EACH;
		result = memory_write_parts(memory, part, parts_of(k, start, i, to, part));
	}
	return result;
}

/* --- made of the file ------------------------------------------------------------------- */

/* The mapping's file, if it is the plan's. */
static int file_open(struct plan *p, pid_t pid, const struct map *m, struct stat *st)
{
	int fd = patch_open(pid, m);
	struct plan *known;

	if (fd < 0)
		return fd;
	if (!fstat(fd, st) && !plan_known(st, &known)) {
		plan_free(known);
		if (known == p)
			return fd;
	}
	close(fd);
	return -ESTALE;
}

static bool pages_note(struct kept_map *k, const struct patch_batch *now)
{
	uint64_t all = k->len / PAGE;

	k->page = malloc((all + 1) * sizeof(*k->page));
	for (uint64_t i = 0; k->page && i < all; i++)
		if (now->touched[i])
			k->page[k->pages++] = (uint32_t)i;
	return k->page;
}

/* All of it is the file's: behind its end the kernel has none. */
static bool has_all(const struct kept_map *k, const struct stat *st)
{
	return k->offset + k->len < (uint64_t)st->st_size + PAGE;
}

static bool near_stat(const char *path, struct stat *st)
{
	struct near_file f;

	if (near_open(path, &f))
		return false;
	*st = f.st;
	near_close(&f);
	return true;
}

/*
 * Whoever runs here may read the file, for what is on the shelf is mapped into all programs.
 * The path is as the kernel has it, without links.
 */
static bool is_everyones(const char *path, const struct stat *file)
{
	char folder[sizeof(((struct map *)0)->path)];
	const char *slash = path;
	bool may = *path == '/' && file->st_mode & S_IROTH;
	struct stat st;

	for (; may && slash; slash = strchr(slash + 1, '/')) {
		snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path + 1), path);
		may = near_stat(folder, &st) && st.st_mode & S_IXOTH;
	}
	return may && near_stat(path, &st) && plan_same_file(&st, file);
}

static bool part_make(struct kept_map *k, const struct map *m, const struct stat *st,
		      const struct patch_batch *now)
{
	uint8_t *to;

	if (k->pages < PART_PAGES || k->len > PART_MAX || m->shared || m->shelved ||
	    !has_all(k, st) || !is_everyones(m->path, st))
		return false;
	k->part = shelf_add(m, &to);
	if (k->part == SHELF_NONE)
		return false;
	memcpy(to, now->code, k->len);
	k->code = to;
	return true;
}

static bool pages_keep(struct kept_map *k, const struct patch_batch *now)
{
	k->bytes = malloc(k->pages * PAGE + 1);
	for (uint64_t i = 0; k->bytes && i < k->pages; i++)
		memcpy(k->bytes + i * PAGE, now->code + k->page[i] * PAGE, PAGE);
	return k->bytes;
}

static void made_keep(struct kept_map *k, const struct map *m, const struct stat *st,
		      const struct patch_sum *sum, struct patch_batch *now, bool shelved)
{
	if (!pages_note(k, now) ||
	    (!(shelved && part_make(k, m, st, now)) && !pages_keep(k, now)))
		return;
	k->sum = *sum;
	k->boards_len = now->boards_len;
	k->ends = now->ends;
	k->boards = now->boards;
	k->end = now->end;
	now->boards = NULL;
	now->end = NULL;
	boards_move(k, -m->start);
	k->made = true;
}

/* Of a file that is near and does not change meanwhile; of the vDSO as it was planned. */
static void make(struct kept_map *k, pid_t pid, const struct map *m,
		 const struct board_room *room, bool shelved)
{
	struct patch_sum sum = { .twins = k->twins };
	struct stat st = { 0 }, after;
	struct patch_batch now;
	int fd = -1;

	MUST(!k->made && !k->boards && k->part == SHELF_NONE);
	k->met = true;
	if (m->inode) {
		fd = file_open(k->plan, pid, m, &st);
		if (fd < 0)
			return;
	}
	if (!patch_copy(k->plan, fd, m, room, k->len <= PART_MAX, &now, &sum) && !sum.guards &&
	    !sum.unclean && (fd < 0 || (!fstat(fd, &after) && plan_same_file(&st, &after))))
		made_keep(k, m, &st, &sum, &now, shelved);
	patch_batch_free(&now);
	if (fd >= 0)
		close(fd);
}

/* --- used -------------------------------------------------------------------------------- */

/* The process has it mapped, and has not moved it yet. */
static bool part_move(const struct kept_map *k, const struct map *m, struct shelf_view *shelf)
{
	const struct shelf_part *p;

	if (!shelf || !k->code || shelf->moves == SHELF_MOVES ||
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

static int write_again(struct kept_map *k, int memory, const struct map *m,
		       struct board_room *room, struct patch_sum *sum, struct shelf_view *shelf)
{
	int result = boards_write(k, memory, m->start, room->at + room->used);

	MUST(k->boards_len <= room->len - room->used && !k->sum.guards && !k->sum.unclean);
	if (!result && !part_move(k, m, shelf))
		result = pages_write(k, memory, m->start);
	if (!result) {
		room->used += k->boards_len;
		*sum = k->sum;
	}
	return result;
}

static void forget(struct kept_map *k)
{
	plan_free(k->plan);
	free(k->page);
	free(k->end);
	free(k->boards);
	free(k->bytes);
	*k = (struct kept_map){ 0 };
}

/* What is on the shelf stays there, and would lie there twice. */
static struct kept_map *oldest(void)
{
	struct kept_map *old = NULL;

	for (struct kept_map *k = all_kept; k < all_kept + KEPT_MAX; k++)
		if (!k->code && (!old || k->used < old->used))
			old = k;
	MUST(old);
	return old;
}

static struct kept_map *note(struct plan *p, const struct map *m, const struct board_room *room,
			     bool twins)
{
	struct kept_map *k = oldest();

	forget(k);
	*k = (struct kept_map){
		.plan = p, .offset = m->offset, .len = m->end - m->start,
		.distance = distance(m, room), .room = room->len - room->used, .twins = twins,
		.used = ++uses, .part = SHELF_NONE,
	};
	plan_ref(p);
	return k;
}

int patched_again(struct plan *p, pid_t pid, int memory, const struct map *m,
		  struct board_room *room, struct patch_sum *sum, struct shelf_view *shelf)
{
	struct kept_map *k = find(p, m, room, sum->twins);
	bool again = k, shelved = shelf && shelf->len;

	if (!k)
		k = note(p, m, room, sum->twins);
	k->used = ++uses;
	if (!k->met && (again || (shelved && shelf_is_roomy())))
		make(k, pid, m, room, shelved);
	return k->made ? write_again(k, memory, m, room, sum, shelf) : -ENOENT;
}
