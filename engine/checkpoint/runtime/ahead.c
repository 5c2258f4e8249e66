/*
 * What is saved as a checkpoint is opened.  What one request has written the next one mostly
 * writes, too, and to save it then costs a sixth of what a check that fails and its call take.
 * There are two lists of it:
 *
 *	hot	what HOT_RUN checkpoints running have saved, whomever they were opened for: the
 *		log's first entries
 *	habit	of each connection, what two running that were opened for it have saved: what it
 *		has of its own, and shares with few
 *
 * A connection has two habits, of which every other checkpoint has one: what lies in two blocks
 * that change places, as they are freed in the order they were allocated in, is in one request's
 * and not in the next one's; and a protocol may have requests by twos.
 *
 * What writes other memory each time (another key, another file) has nothing new to tell of most
 * requests: of a habit that has had HABIT_USES checkpoints two running of LEARN_USES are learnt of.
 *
 * No tag says whether a region that is saved ahead is written, too.  So hot ones must be saved by
 * a check again as the tags are wiped.  Of a habit goes what a checkpoint has not changed: that is
 * looked for each HABIT_USES checkpoints, and where it has no room for much that was saved besides.
 *
 * Only memory that is always there can be saved ahead: the program's data, its heap, and the second
 * stack of who opens checkpoints.  Where the program shuts a page of these, or unmaps it, all is
 * forgotten.
 */
#include <string.h>
#include <sys/mman.h>
#include "engine/checkpoint/runtime/heap.h"
#include "engine/checkpoint/runtime/kernel.h"
#include "engine/checkpoint/runtime/save.h"
#include "engine/checkpoint/runtime/stacks.h"
#include "engine/checkpoint/runtime/state.h"
#include "engine/checkpoint/seam/seam.h"

#define HOT_RUN		8
#define HABIT_USES	64
#define LEARN_USES	8
#define PAGE		4096ul

struct habit {
	uint32_t name, forgotten;	/* of another, or older than what was forgotten: none */
	uint32_t uses;
	uint16_t number, candidates;
	uint64_t some;			/* a bit for each candidate: most others have another */
	uintptr_t region[HABIT_MAX];	/* and behind them the candidates: what the last one has
					 * saved besides */
};

_Static_assert(2 * HABITS * sizeof(struct habit) <= HABITS_BYTES &&
	       PAGE % sizeof(struct habit) == 0, "their place");

/* --- what is hot -------------------------------------------------------------------------- */

/* Of several regions that have one place here only the last is known: it does no harm. */
static inline struct run *run_of(uintptr_t region)
{
	return &state_tables->run[(uint32_t)(region / REGION) * 0x9E3779B1u / (~0u / RUNS + 1)];
}

SAVES uintptr_t ahead_hot(uintptr_t region)
{
	struct run *run = run_of(region), now = *run;
	uint32_t name = (uint32_t)(region / REGION);

	if (now.name != name || now.epoch != state->epoch - 1)
		now = (struct run){ .name = name, .number = state->epoch > 1 };
	now.epoch = state->epoch;
	now.number += now.number < HOT_RUN;
	*run = now;
	if (now.number < HOT_RUN)
		return 0;
	state->hotter = 1;
	return HOT;
}

/* They have to show it again: the next checkpoint saves none of them ahead. */
static void hot_doubt(void)
{
	for (size_t n = 0; n < state->hot; n++)
		*run_of(LOG[n].at) = (struct run){
			.name = (uint32_t)(LOG[n].at / REGION), .number = HOT_RUN,
			.epoch = state->last == EPOCH_LAST ? 0 : state->last };
	state->hot = 0;
}

/* --- habits ------------------------------------------------------------------------------- */

/* The one that the next checkpoint has. */
static uint32_t next_name(void)
{
	return 2 * state->whose | (state->serial & 1);
}

static struct habit *habit_of(uint32_t name)
{
	uint32_t place = name % (2 * HABITS);
	struct habit *habit = (struct habit *)HABITS_AT + place;

	if (habit->name != name || habit->forgotten != state->forgotten) {
		*habit = (struct habit){ .name = name, .forgotten = state->forgotten };
		if (state->habits <= place)
			state->habits = place + 1;
	}
	return habit;
}

/* Pages with habits of connections that are gone, and no others', are given back. */
static void habits_trim(void)
{
	const struct habit *habit = (struct habit *)HABITS_AT, *end = habit + state->habits;

	for (; habit < end; habit += PAGE / sizeof(*habit)) {
		int any = 0, stay = 0;

		for (size_t n = 0; n < PAGE / sizeof(*habit); n++) {
			any |= habit[n].name != 0;
			stay |= habit[n].name > 1 && is_connection((int)(habit[n].name / 2) - 1);
		}
		if (any && !stay)
			KERNEL_3(SYS_madvise, habit, PAGE, MADV_DONTNEED);
	}
}

static uint64_t bit_of(uintptr_t region)
{
	return 1ul << region / REGION % 64;
}

/* A candidate becomes one of the habit's.  Requests write in much the same order: it is looked for
 * from where the last one was found. */
static int is_candidate(struct habit *habit, uintptr_t region, unsigned *from)
{
	uintptr_t *first = habit->region + habit->number;

	if (!(habit->some & bit_of(region)))
		return 0;
	for (unsigned n = 0; n < habit->candidates; n++) {
		unsigned at = *from;

		*from = at + 1 < habit->candidates ? at + 1 : 0;
		if (first[at] != region)
			continue;
		first[at] = first[0];
		first[0] = region;
		habit->number++;
		habit->candidates--;
		*from = at < habit->candidates ? at : 0;
		return 1;
	}
	return 0;
}

/* --- both --------------------------------------------------------------------------------- */

/* Where a region can be read at any time. */
#define PLACES	3

struct there {
	uintptr_t begin, end;
};

static int is_there(const struct there *there, uintptr_t at, size_t size)
{
	for (int n = 0; n < PLACES; n++)
		if (at < there[n].end && at + size > there[n].begin)
			return 1;
	return 0;
}

static void there_find(struct there *there)
{
	uintptr_t rest;

	heap_bounds(&there[0].begin, &there[0].end, &rest);
	there[1].begin = (uintptr_t)&__data_start;
	there[1].end = (uintptr_t)&_end;
	there[2].begin = state->frames_place;
	there[2].end = state->frames_place + (state->frames_place ? FRAMES_ROOM : 0);
}

/* Of what was saved ahead from here on stays what has changed since. */
static void weed(struct habit *habit, const struct entry *entry, size_t saved)
{
	uint16_t stay = 0;

	for (size_t n = 0; n < habit->number; n++)
		if (n >= saved || entry[n].serial != state->serial ||
		    memcmp((void *)habit->region[n], entry[n].bytes, REGION))
			habit->region[stay++] = habit->region[n];
	habit->number = stay;
}

/* From what the last checkpoint has saved besides: mostly nothing. */
__attribute__((noinline)) static void learn(struct habit *habit)
{
	size_t all = state->head < LOG_ENTRIES ? state->head : LOG_ENTRIES;
	uintptr_t other[HABIT_MAX];
	const struct entry *entry = LOG + state->hot;
	size_t saved = habit->number;
	uint16_t others = 0, room;
	struct there there[PLACES];
	unsigned from = 0;

	there_find(there);
	for (size_t n = state->ahead; n < all; n++) {
		uintptr_t at = LOG[n].at, region = at & -REGION;

		if (at & IN_LONG || LOG[n].serial != state->serial ||
		    !is_there(there, region, REGION))
			continue;
		if (at & HOT && state->hot < HOT_MAX)
			LOG[state->hot++].at = region;
		else if (!is_candidate(habit, region, &from) && others < HABIT_MAX)
			other[others++] = region;
	}
	room = HABIT_MAX - habit->number;
	if (others > room + saved / 4 || habit->uses % HABIT_USES == 0)
		weed(habit, entry, saved);
	room = HABIT_MAX - habit->number;
	others = others < room ? others : room;
	memcpy(habit->region + habit->number, other, others * sizeof(other[0]));
	habit->candidates = others;
	habit->some = 0;
	for (unsigned n = 0; n < others; n++)
		habit->some |= bit_of(other[n]);
}

/* Before it says otherwise there may be some that cannot be read. */
static void forget(void)
{
	state->forgets = 0;
	state->hot = 0;
	state->forgotten++;
}

static int is_to_learn(const struct habit *habit)
{
	if (habit->uses % HABIT_USES == 0)
		return 1;
	return state->head > state->ahead &&
	       (state->hotter || habit->uses < HABIT_USES || habit->uses % LEARN_USES < 2);
}

size_t ahead_choose(void)
{
	struct habit *habit = habit_of(state->habit);

	if (state->forgets)
		forget();
	else if (is_to_learn(habit))
		learn(habit);
	else
		habit->candidates = 0;
	if (state->doubts || state->last == EPOCH_LAST)
		hot_doubt();
	if (state->last == EPOCH_LAST)
		habits_trim();
	state->doubts = 0;
	state->hotter = 0;
	state->habit = next_name();
	habit = habit_of(state->habit);
	habit->uses++;
	return state->hot + habit->number;
}

IN_LINE void copy_wide(struct entry *entry, uintptr_t region)
{
	for (size_t n = 0; n < REGION; n += 32)
		__asm__ volatile("vmovups %1, %%ymm0\n\tvmovups %%ymm0, %0"
				 : "=m"(*(char (*)[32])(entry->bytes + n))
				 : "m"(*(const char (*)[32])(region + n)) : "xmm0", "memory");
}

typedef void copies(struct entry *entry, uintptr_t region);

IN_LINE void save_one(copies *copy, struct entry *entry, uintptr_t region, uint8_t epoch,
		      uint64_t serial)
{
	copy(entry, region);
	if (entry_fill(entry, region, epoch, serial))
		*(volatile uint8_t *)tag_of(region) = epoch;
}

IN_LINE void save(copies *copy)
{
	const uint8_t epoch = state->epoch;
	const uint64_t serial = state->serial;
	struct entry *const end = LOG + state->hot;
	const struct habit *habit = habit_of(state->habit);
	const uintptr_t *region = habit->region, *const last = region + habit->number;

	for (struct entry *entry = LOG; entry < end; entry++)
		save_one(copy, entry, entry->at, epoch, serial);
	for (struct entry *entry = end; region < last; entry++, region++) {
		entry->at = *region;
		save_one(copy, entry, *region, epoch, serial);
	}
}

__attribute__((target("avx"))) static void save_wide(void)
{
	save(copy_wide);
	__asm__ volatile("vzeroupper");
}

/* The checkpoint is open: whoever comes in between saves by himself, behind these. */
void ahead_save(void)
{
	if (__builtin_cpu_supports("avx"))
		save_wide();
	else
		save(entry_copy);
	state->counts.ahead += state->ahead;
}

void ahead_forget(const void *at, size_t size)
{
	struct there there[PLACES];

	there_find(there);
	if (is_there(there, (uintptr_t)at, size))
		state->forgets = 1;
}
