/*
 * Threads and their update points.
 *
 * A thread that the server makes runs under worker_run(), main() under points_run(): that is
 * where it comes back to when it is to begin anew.  What stands of it on its stack below is
 * gone then; until it does, it stands, and its locals can be read.
 *
 * One lock guards all of it; a thread that is asked waits on `round_`.  Both are futexes of our
 * own: under mve libc's locks are told to who follows, and a twin that is updated passes here
 * otherwise than its leader does (docs/design/updates.md).
 */
#include "engine/update/points.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <unwind.h>

#include "engine/update/session.h"
#include "engine/update/update.h"
#include "engine/update/word.h"

#define KNOCK		SIGURG	/* ends a call that waits; the server does not use it */
#define KNOCK_MS	5
#define POINT_NAME	64
#define PASSED_SIZE	160

/* Limit (live update): callbacks that are kept. Beyond: the server is ended. */
#define CALLS_MAX	64

enum worker_state { WORKER_RUNS, WORKER_STANDS, WORKER_ARRIVED, WORKER_ENDED };

struct worker {
	struct worker *next;
	pthread_t id;
	pid_t tid;
	void *(*function)(void *);
	void *argument;
	struct image *image;	/* main's: then there is no function */
	int argc;
	char **argv;
	sigjmp_buf top;
	char *stack;		/* where it began */
	char *here;		/* where it stands */
	char point[POINT_NAME];
	char passed[PASSED_SIZE];	/* in the new build: ", NAME," of each point */
	pthread_cond_t *condition;	/* what it waits for, where that is a point */
	/* When it is asked; or NULL.  A handler of its own reads them. */
	void (*volatile called)(void *arg);
	void *volatile called_arg;
	const char *at;		/* where it was in the build's code when it was knocked at last */
	enum worker_state state;
	bool updating;
};

static uint32_t lock;		/* word_lock */
static struct worker *workers;
static struct kept_local *locals;
static bool asked;	/* read without the lock: nothing hangs on its order */
static enum { GO_WAIT, GO_ON, GO_ANEW } verdict;
static uint32_t round_;	/* futex: who stands waits for the next one */
static uint32_t stands;	/* futex: who waits for all looks again at each that has come to stand */
static struct image *running;
static __thread struct worker *self;
static uint64_t late_at;

static struct call {
	enum point_when when;
	void (*call)(void);
} calls[CALLS_MAX];
static unsigned ncalls;

/* --- threads begin ------------------------------------------------------------ */

/* The innermost frame that is the build's: what stands above it is libraries'. */
static _Unwind_Reason_Code frame_look(struct _Unwind_Context *frame, void *at)
{
	int before = 0;
	const char *is = (const char *)_Unwind_GetIPInfo(frame, &before);

	if (!image_holds(running, is))
		return _URC_NO_REASON;
	*(const char **)at = is - !before;	/* where it returns to may be behind its function */
	return _URC_END_OF_STACK;
}

static void knocked(int signal)
{
	struct worker *w = self;
	const char *at = NULL;

	(void)signal;
	if (!w || w->state != WORKER_RUNS || !points_are_asked())
		return;
	_Unwind_Backtrace(frame_look, &at);
	__atomic_store_n(&w->at, at, __ATOMIC_RELAXED);
	if (w->called)
		w->called(w->called_arg);
}

static void knock_ready(void)
{
	struct sigaction a = { .sa_handler = knocked };

	sigaction(KNOCK, &a, NULL);
}

/* Known before it runs: else all could stand, and it would begin in the old code. */
static void worker_add(struct worker *w)
{
	word_lock(&lock);
	w->next = workers;
	workers = w;
	word_unlock(&lock);
}

static void worker_begins(struct worker *w)
{
	word_lock(&lock);
	w->id = pthread_self();
	w->tid = (pid_t)syscall(SYS_gettid);
	self = w;
	word_unlock(&lock);
}

/* All of a thread that ends; else those of the old code that the new one has not named anew. */
static void locals_drop(struct worker *w, bool all)
{
	struct kept_local **at = &locals;

	while (*at) {
		struct kept_local *l = *at;

		if (l->thread != w || !(all || l->value)) {
			at = &l->next;
			continue;
		}
		*at = l->next;
		free(l->value);
		free(l);
	}
}

/* On its way in a twin: the update is over, and so is the twin, once who waits has said so. */
static void ended_early(struct worker *w)
{
	word_lock(&lock);
	w->state = WORKER_ENDED;
	stands++;
	word_wake(&stands);
	word_unlock(&lock);
	for (;;)
		word_wait(&stands, stands, WORD_OURS, 0);
}

static void worker_gone(void *arg)
{
	struct worker *w = arg, **at = &workers;

	if (w->updating && session_is_twin())
		ended_early(w);
	word_lock(&lock);
	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	locals_drop(w, true);
	word_unlock(&lock);
	free(w);
}

static void *worker_run(void *arg)
{
	struct worker *w = arg;
	void *result;

	w->stack = __builtin_frame_address(0);
	worker_begins(w);
	pthread_cleanup_push(worker_gone, w);
	sigsetjmp(w->top, 1);
	result = w->function(w->argument);
	pthread_cleanup_pop(1);
	return result;
}

typedef int (*creator)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

/* The server's, in place of libc's: of others' threads nothing is known. */
int pthread_create(pthread_t *id, const pthread_attr_t *attr, void *(*function)(void *),
	void *argument)
{
	creator real = (creator)dlsym(RTLD_NEXT, "pthread_create");
	struct worker *w;
	int err;

	if (!running || !image_holds(running, (void *)function))
		return real(id, attr, function, argument);
	w = calloc(1, sizeof(*w));
	if (!w)
		return EAGAIN;
	w->function = function;
	w->argument = argument;
	worker_add(w);
	err = real(id, attr, worker_run, w);
	if (err)
		worker_gone(w);
	return err;
}

extern char **environ;

int points_run(struct image *image, int argc, char **argv)
{
	struct worker *w = calloc(1, sizeof(*w));

	if (!w)
		return 1;
	running = image;
	w->image = image;
	w->argc = argc;
	w->argv = argv;
	w->stack = __builtin_frame_address(0);
	knock_ready();
	worker_add(w);
	worker_begins(w);
	sigsetjmp(w->top, 1);
	return self->image->main(self->argc, self->argv, environ);
}

/* --- points -------------------------------------------------------------------- */

static void stand(struct worker *w, enum worker_state state)
{
	uint32_t now = round_;

	w->here = __builtin_frame_address(0);
	w->state = state;
	stands++;
	word_wake(&stands);
	word_unlock(&lock);
	while (CONSUME(update_round, &round_) == now)
		word_wait(&round_, now, WORD_OURS, 0);
	word_lock(&lock);
}

/* In the old code: true, if it is to begin anew. */
static bool stand_old(struct worker *w)
{
	bool anew = false;

	word_lock(&lock);
	if (asked) {
		stand(w, WORKER_STANDS);
		anew = verdict == GO_ANEW;
	}
	w->updating = anew;
	word_unlock(&lock);
	return anew;
}

/* In the new code: it is where it was, and waits for the others. */
static void stand_new(struct worker *w)
{
	word_lock(&lock);
	stand(w, WORKER_ARRIVED);
	w->updating = false;
	locals_drop(w, false);
	word_unlock(&lock);
}

bool points_are_asked(void)
{
	return __atomic_load_n(&asked, __ATOMIC_RELAXED);
}

bool points_concern_me(void)
{
	return self && (self->updating || points_are_asked());
}

void points_wait(pthread_cond_t *condition)
{
	if (self)
		__atomic_store_n(&self->condition, condition, __ATOMIC_RELAXED);
}

/* Each once, as far as there is room. */
static void passed_note(struct worker *w, const char *name)
{
	char one[POINT_NAME + 3];
	size_t n = strlen(w->passed);

	snprintf(one, sizeof(one), ", %s,", name);
	if (n + strlen(one) < sizeof(w->passed) && !strstr(w->passed, one))
		snprintf(w->passed + n - !!n, sizeof(w->passed) - n, "%s", one);
}

void mve_update_point(const char *name)
{
	struct worker *w = self;

	if (!points_concern_me())
		return;
	if (w->updating) {
		if (!strcmp(w->point, name))
			stand_new(w);
		else
			passed_note(w, name);
		return;
	}
	snprintf(w->point, sizeof(w->point), "%s", name);
	session_point();
	if (stand_old(w))
		siglongjmp(w->top, 1);
}

void mve_update_asked(void (*call)(void *arg), void *arg)
{
	if (!self)
		return;
	self->called = NULL;	/* never the one with the other's argument */
	self->called_arg = arg;
	self->called = call;
}

bool mve_updating(void)
{
	return self && self->updating;
}

/* --- locals, callbacks ----------------------------------------------------------- */

static struct kept_local *local_find(const struct worker *w, const char *function,
	const char *name)
{
	struct kept_local *l = locals;

	while (l && (l->thread != w || strcmp(l->function, function) || strcmp(l->name, name)))
		l = l->next;
	return l;
}

static struct kept_local *local_new(struct worker *w, const char *function, const char *name)
{
	struct kept_local *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->thread = w;
	snprintf(l->function, sizeof(l->function), "%s", function);
	snprintf(l->name, sizeof(l->name), "%s", name);
	l->next = locals;
	locals = l;
	return l;
}

bool mve_local_keep(const char *function, const char *name, void *at, size_t size)
{
	struct kept_local *l;
	bool taken = false;

	if (!self)
		return false;
	word_lock(&lock);
	l = local_find(self, function, name);
	if (l && self->updating && l->value && l->size == size) {
		memcpy(at, l->value, size);
		taken = true;
	}
	if (!l)
		l = local_new(self, function, name);
	if (l) {
		free(l->value);
		l->value = NULL;
		l->at = at;
		l->size = size;
	}
	word_unlock(&lock);
	return taken;
}

static void call_keep(enum point_when when, void (*call)(void))
{
	word_lock(&lock);
	if (ncalls == CALLS_MAX)
		abort();
	calls[ncalls++] = (struct call){ when, call };
	word_unlock(&lock);
}

void mve_update_before(void (*call)(void)) { call_keep(POINT_BEFORE, call); }
void mve_update_after(void (*call)(void)) { call_keep(POINT_AFTER, call); }
void mve_update_abort(void (*call)(void)) { call_keep(POINT_ABORT, call); }

void points_call(enum point_when when, const struct image *image)
{
	for (unsigned i = 0; i < ncalls; i++)
		if (calls[i].when == when && image_holds(image, (void *)calls[i].call))
			calls[i].call();
}

/* Those of a build that is gone. */
static void calls_drop(const struct image *image)
{
	unsigned n = 0;

	for (unsigned i = 0; i < ncalls; i++)
		if (!image_holds(image, (void *)calls[i].call))
			calls[n++] = calls[i];
	ncalls = n;
}

/* --- all of them ------------------------------------------------------------------ */

static struct worker *late(enum worker_state state)
{
	struct worker *w = workers;

	while (w && w->state == state)
		w = w->next;
	return w;
}

/* It will never be there. */
static struct worker *ended(void)
{
	struct worker *w = workers;

	while (w && w->state != WORKER_ENDED)
		w = w->next;
	return w;
}

static bool later(const struct timespec *than)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec > than->tv_sec ||
		(now.tv_sec == than->tv_sec && now.tv_nsec >= than->tv_nsec);
}

static struct timespec in_ms(unsigned ms)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_sec += ms / 1000;
	t.tv_nsec += ms % 1000 * 1000000l;
	t.tv_sec += t.tv_nsec / 1000000000l;
	t.tv_nsec %= 1000000000l;
	return t;
}

/* A call that waits ends, and so does a wait for a condition. */
static void knock(const struct worker *w)
{
	pthread_cond_t *condition = __atomic_load_n(&w->condition, __ATOMIC_RELAXED);

	pthread_kill(w->id, KNOCK);
	if (condition)
		pthread_cond_broadcast(condition);
}

/*
 * With the lock held, which is given up in between.  NULL: all are; else who is not.
 *
 * In the old build those that stand wait for the others, and clients for them: the limit is time.
 * In the new one nothing is lost but the update, so it is what we have slept: on a busy machine
 * the threads wait for a processor as we do.
 */
static struct worker *wait_for(enum worker_state state, unsigned limit_ms)
{
	struct timespec end = in_ms(limit_ms);
	unsigned naps = (limit_ms + KNOCK_MS - 1) / KNOCK_MS;
	bool again = true;

	while (!ended() && late(state) && (state == WORKER_STANDS ? !later(&end) : naps > 0)) {
		uint32_t seen = stands;

		for (struct worker *w = workers; w && again && state == WORKER_STANDS; w = w->next)
			if (w->state != state && w->tid)
				knock(w);
		word_unlock(&lock);
		again = !word_wait(&stands, seen, WORD_OURS, KNOCK_MS);
		word_lock(&lock);
		naps -= again;
	}
	return ended() ? ended() : late(state);
}

/* A compiler's part of a function, find.part.0, is that function's. */
static int name_length(const char *name)
{
	return (int)strcspn(name, ".");
}

static const char *began_at(const struct worker *w)
{
	const char *name = w->function ? image_function(running, (void *)w->function) : "main";

	return name ? name : "begun at a function without a name";
}

static void name_of(const struct worker *w, char *why, size_t size, const char *what)
{
	const char *at = __atomic_load_n(&w->at, __ATOMIC_RELAXED), *began = began_at(w);
	const char *is = at && image_holds(running, at) ? image_function(running, at) : NULL;

	late_at = is ? (uint64_t)at : 0;
	snprintf(why, size, "thread %d, %.*s, %s%s%s%s%.*s", (int)w->tid, name_length(began), began,
		what, *w->point ? "; its last point was " : "", w->point, is ? "; it is in " : "",
		is ? name_length(is) : 0, is ? is : "");
}

/* In the new build: which point it was to come to, and what it did instead. */
static void way_of(const struct worker *w, char *why, size_t size)
{
	const char *refused = session_refused(), *began = began_at(w);
	bool over = w->state == WORKER_ENDED;

	late_at = over ? 0 : session_place_of(w->tid);
	snprintf(why, size, "thread %d, %.*s, %s its point, %s, in the new build; it passed %.*s"
		"%s%s", (int)w->tid, name_length(began), began, over ? "ended before it came to" :
		"did not come to", w->point, *w->passed ? (int)strlen(w->passed) - 3 : 8,
		*w->passed ? w->passed + 2 : "no other", refused ? "; refused there: " : "",
		refused ? refused : "");
}

uint64_t points_late_at(void)
{
	return late_at;
}

bool points_stop(unsigned limit_ms, char *why, size_t size)
{
	struct worker *w;

	word_lock(&lock);
	late_at = 0;
	verdict = GO_WAIT;
	__atomic_store_n(&asked, true, __ATOMIC_RELAXED);
	w = wait_for(WORKER_STANDS, limit_ms);
	if (w)
		name_of(w, why, size, "did not come to an update point");
	word_unlock(&lock);
	return !w;
}

/* Nobody stands from here on, whether it has woken yet or not. */
static void release(int as)
{
	for (struct worker *w = workers; w; w = w->next) {
		w->state = WORKER_RUNS;
		w->at = NULL;
		w->passed[0] = 0;
	}
	verdict = as;
	__atomic_store_n(&asked, false, __ATOMIC_RELAXED);
	PUBLISH_BY(update_round, add_fetch, &round_, 1);
	word_wake(&round_);
}

void points_go_on(void)
{
	word_lock(&lock);
	release(GO_ON);
	word_unlock(&lock);
}

bool points_restart(struct image *new, unsigned limit_ms, char *why, size_t size)
{
	const struct image *old = running;
	struct worker *w;

	word_lock(&lock);
	calls_drop(old);
	running = new;
	for (w = workers; w; w = w->next)
		w->image = w->image ? new : NULL;
	session_does("on the way to its points in the new build");
	release(GO_ANEW);
	w = wait_for(WORKER_ARRIVED, limit_ms);
	if (w)
		way_of(w, why, size);
	word_unlock(&lock);
	if (w)
		return false;
	session_does("in a function of mve_update_after");
	points_call(POINT_AFTER, new);
	return true;
}

bool points_are_stack(const void *at)
{
	for (const struct worker *w = workers; w; w = w->next)
		if ((const char *)at >= w->here && (const char *)at <= w->stack)
			return true;
	return false;
}

bool points_plan(struct migration *m)
{
	for (struct worker *w = workers; w; w = w->next)
		if (w->function && !plan_argument(m, function_name(m, (void *)w->function),
				w->argument))
			return false;
	for (struct worker *w = workers; w; w = w->next)
		if (w->function && migrated_code(m, (void *)w->function) == (void *)w->function)
			return wrong(m, "thread %d began at a function that the new build has not",
				(int)w->tid);
	return true;
}

void points_fill(struct migration *m)
{
	for (struct worker *w = workers; w; w = w->next) {
		if (!w->function)
			continue;
		/* What a variable is nobody has to say. */
		if (thread_said(m, function_name(m, (void *)w->function)) ||
		    (!m->x->code_only && image_holds(m->old, w->argument)))
			w->argument = migrated(m, w->argument);
		w->function = (void *(*)(void *))migrated_code(m, (void *)w->function);
	}
}

struct kept_local *points_locals(void)
{
	return locals;
}
