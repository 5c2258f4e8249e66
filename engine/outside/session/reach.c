/*
 * Reaching into another process, whose pages, locks and files may not answer: a page may be
 * one of a FUSE's or of a userfaultfd's, and who waits for it in the kernel can hold its map.
 * So a thread of ours does it, the loop waits for that with a limit, and leaves the thread
 * behind where it is over: it keeps its row until the kernel lets it go, and another takes
 * its place.
 *
 * Nobody can have the loop wait again and again: what a user's processes have it wait for is
 * counted, and beyond a measure they are not reached; nor while two threads still wait for
 * them.  What is counted is what was waited for in the kernel: where a processor is wanting
 * that is nobody's fault.
 */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "engine/abi/area.h"
#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/outside/kernel/process.h"
#include "engine/outside/session/reach.h"

#define REACH_MS	1000	/* for what is lost if it is not done */
#define TRY_MS		100
#define LOOK_MS		20	/* at a thread that is not done: it may want a processor only */
#define SPINS		500	/* looks before it sleeps: most is done sooner than one is woken */
#define SPINS_URGENT	4000	/* where clients wait: until a thread has been woken, and does it */
#define STARVED_MS	10000	/* which is the machine's, up to then */

/* Limit (reaching into processes): at a time that do not answer. Beyond: none that may not. */
#define STUCK		4
/* Limit (reaching into processes): of one user. Beyond: its processes are not reached. */
#define STUCK_EACH	2
#define ROWS		(STUCK + 1)

#define DEBT_MS		2000	/* so long a user's processes have us wait, and */
#define DEBT_SHARE	4	/* a part of the time that goes by */
#define DEBTS		16

enum state { ROW_IDLE, ROW_GIVEN, ROW_DONE };

static struct row {
	uint32_t state;		/* the loop gives, its thread is done */
	bool begun;
	pid_t tid;		/* its thread's, once that runs */
	long (*work)(void *room);
	void (*late)(void *room, long result);
	void *room;
	long result;
	unsigned waited_ms;	/* in the kernel, as far as it is over */
	bool posted;		/* nobody waits for it */
	bool stuck;		/* left behind */
	pid_t pid;		/* whom it is about */
	uid_t user;		/* of one that is stuck */
} rows[ROWS];

static struct { uint64_t ms, at_ms; } debts[DEBTS];
static struct row *row_now;	/* whose room was given */
static unsigned stuck, posted;
static unsigned spins = SPINS;
static bool owing;
static pid_t ours;	/* in a child of it nobody else is served */
static pid_t stands;

static bool is_direct(void)
{
	return !ours || ours != getpid();
}

static uint64_t clock_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static enum state state_of(const struct row *row)
{
	return CONSUME(reach_state, &row->state);
}

static void state_sleep(struct row *row, enum state is, const struct timespec *limit)
{
	syscall(SYS_futex, &row->state, FUTEX_WAIT_PRIVATE, is, limit, NULL, 0);
}

static void state_wait(struct row *row, enum state is, const struct timespec *limit)
{
	for (unsigned i = 0; i < spins; i++) {
		if (state_of(row) != is)
			return;
		__builtin_ia32_pause();
	}
	state_sleep(row, is, limit);
}

static void state_set(struct row *row, enum state state)
{
	PUBLISH(reach_state, &row->state, state);
	syscall(SYS_futex, &row->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* --- the thread ----------------------------------------------------------------------- */

/* How often it has slept: who never has did not wait. */
static long sleeps(void)
{
	struct rusage u;

	getrusage(RUSAGE_THREAD, &u);
	return u.ru_nvcsw;
}

static void *row_run(void *arg)
{
	struct row *row = arg;

	__atomic_store_n(&row->tid, gettid(), __ATOMIC_RELAXED);
	for (;;) {
		enum state is;
		uint64_t since;
		long before;

		while ((is = state_of(row)) != ROW_GIVEN)
			state_sleep(row, is, NULL);
		since = clock_ms();
		before = sleeps();
		row->result = row->work(row->room);
		row->waited_ms = sleeps() == before ? 0 : (unsigned)(clock_ms() - since);
		state_set(row, ROW_DONE);
	}
	return NULL;
}

/* So long it has waited, at the least, if it is not done. */
static bool done_within(struct row *row, unsigned limit_ms)
{
	const struct timespec look = { 0, LOOK_MS * 1000000 };
	uint64_t since = clock_ms();
	unsigned waited = 0;
	pid_t tid;

	while (state_of(row) != ROW_DONE) {
		state_wait(row, ROW_GIVEN, &look);
		if (state_of(row) == ROW_DONE || waited >= limit_ms ||
		    clock_ms() >= since + STARVED_MS)
			break;
		tid = __atomic_load_n(&row->tid, __ATOMIC_RELAXED);
		waited += tid && thread_state(ours, tid) != 'R' ? LOOK_MS : 0;
	}
	return state_of(row) == ROW_DONE;
}

/* --- whom it costs what --------------------------------------------------------------- */

/* Users whose numbers fall together have one measure for all of them. */
static uint64_t debt_of(uid_t user)
{
	uint64_t now = clock_ms(), *ms = &debts[user % DEBTS].ms, *at = &debts[user % DEBTS].at_ms;
	uint64_t paid = (now - *at) / DEBT_SHARE;

	MUST(now >= *at);
	if (paid) {
		*ms -= paid < *ms ? paid : *ms;
		*at = now;
	}
	return *ms;
}

static void debt_add(pid_t pid, unsigned ms)
{
	uid_t user = process_user(pid);

	debt_of(user);
	debts[user % DEBTS].ms += ms;
	owing = true;
}

static bool owes_none(void)
{
	for (uid_t i = 0; i < DEBTS; i++)
		if (debt_of(i))
			return false;
	return true;
}

/* It waits for who knows how long, and keeps its row. */
static void row_leave(struct row *row, unsigned waited_ms)
{
	MUST(!row->stuck && stuck < ROWS);
	row->user = process_user(row->pid);
	row->stuck = true;
	stuck++;
	if (waited_ms)
		debt_add(row->pid, waited_ms);
}

/* What a thread that was left behind has come to is given back, and its row is free. */
static void stuck_end(struct row *row)
{
	if (row->late)
		row->late(row->room, row->result);
	row->stuck = false;
	stuck--;
}

/* Done, or left behind. */
static void posted_end(struct row *row, bool done)
{
	row->posted = false;
	posted--;
	if (!done) {
		row_leave(row, 0);
		return;
	}
	if (row->waited_ms)
		debt_add(row->pid, row->waited_ms);
	if (row->late)
		row->late(row->room, row->result);
}

static void rows_look(void)
{
	for (struct row *row = rows; stuck && row < rows + ROWS; row++)
		if (row->stuck && state_of(row) == ROW_DONE)
			stuck_end(row);
}

/*
 * What comes next finds it done, or its process left alone: a request that seems to have no
 * answer yet would be served twice, and the second answer be the next request's.
 */
void reach_settle(void)
{
	for (struct row *row = rows; posted && row < rows + ROWS; row++)
		if (row->posted)
			posted_end(row, done_within(row, TRY_MS));
	MUST(!posted);
}

static bool stuck_for(pid_t pid, uid_t user)
{
	unsigned own = 0;

	for (const struct row *row = rows; row < rows + ROWS; row++) {
		if (row->stuck && row->pid == pid)
			return true;
		own += row->stuck && row->user == user;
	}
	return own >= STUCK_EACH || stuck >= STUCK;
}

bool reach_may(pid_t pid)
{
	uid_t user;

	if (is_direct())
		return true;
	reach_settle();
	rows_look();
	owing = owing && !owes_none();
	if (!stuck && !owing)
		return true;
	user = process_user(pid);
	return !stuck_for(pid, user) && debt_of(user) < DEBT_MS;
}

/* --- in the loop ---------------------------------------------------------------------- */

static bool row_ready(struct row *row)
{
	pthread_t thread;

	if (!row->room)
		row->room = mmap(NULL, REACH_ROOM, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (row->room == MAP_FAILED) {
		row->room = NULL;
		return false;
	}
	if (is_direct() || row->begun)
		return true;
	row->begun = !pthread_create(&thread, NULL, row_run, row) && !pthread_detach(thread);
	return row->begun;
}

static struct row *row_free(void)
{
	struct row *row = rows;

	while (row < rows + ROWS && row->stuck)
		row++;
	MUST(row < rows + ROWS);	/* one more than can be stuck */
	return row;
}

void reach_hasten(bool urgent)
{
	spins = urgent ? SPINS_URGENT : SPINS;
}

void reach_waited(pid_t pid, unsigned ms)
{
	if (!is_direct())
		debt_add(pid, ms);
}

void *reach_room(pid_t pid, size_t size)
{
	MUST(size <= REACH_ROOM);
	row_now = NULL;
	if (!reach_may(pid))
		return NULL;
	row_now = row_free();
	if (!row_ready(row_now)) {
		row_now = NULL;
		return NULL;
	}
	row_now->pid = pid;
	return row_now->room;
}

static void row_give(struct row *row, long (*work)(void *), void (*late)(void *, long))
{
	row->work = work;
	row->late = late;
	state_set(row, ROW_GIVEN);
}

static long reach_within(long (*work)(void *), void (*late)(void *, long),
			 unsigned limit_ms)
{
	struct row *row = row_now;

	MUST(row && !row->stuck);
	row_now = NULL;
	if (is_direct())
		return work(row->room);
	row_give(row, work, late);
	if (done_within(row, limit_ms)) {
		if (row->waited_ms)
			debt_add(row->pid, row->waited_ms);
		return row->result;
	}
	row_leave(row, limit_ms);
	return -ETIME;
}

long reach_do(long (*work)(void *room), void (*late)(void *room, long result))
{
	return reach_within(work, late, REACH_MS);
}

long reach_try(long (*work)(void *room), void (*late)(void *room, long result))
{
	return reach_within(work, late, TRY_MS);
}

void reach_post(long (*work)(void *room), void (*late)(void *room, long result))
{
	struct row *row = row_now;

	MUST(row && !row->stuck && !row->posted);
	row_now = NULL;
	if (is_direct()) {
		long result = work(row->room);

		if (late)
			late(row->room, result);
		return;
	}
	row->posted = true;
	posted++;
	row_give(row, work, late);
}

/* A copy of the monitor has none of its threads. */
void reach_begin(void)
{
	ours = getpid();
	stuck = posted = 0;
	owing = false;
	for (struct row *row = rows; row < rows + ROWS; row++)
		*row = (struct row){ .room = row->room };
}

pid_t reach_stopped(pid_t pid)
{
	pid_t before = stands;

	stands = pid;
	return before;
}

bool reach_in_place(pid_t pid)
{
	return pid == stands || is_direct();
}
