/*
 * A leader whose only thread crashes stands from then on: what it asks, and what is to be sent of
 * it, is looked up by the thread that hears its bell, while the loop is woken, chooses who leads
 * and switches the streams.  It looks where the leader says that it dies, which is a hint and no
 * more: who asks is seen in the asker's own memory, as ever.  Meanwhile the loop looks by itself
 * who asks, for nobody hears that bell.
 *
 * What it reaches for may not answer.  The loop waits for it a moment, which is counted as any
 * such is (session/reach.c), and does by itself what was not done by then; nothing of what was
 * looked up is believed for another request than that one, or longer than until the takeover ends.
 */
#include <errno.h>
#include <linux/futex.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "engine/abi/standing.h"
#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/core/ring.h"
#include "engine/outside/kernel/asker.h"
#include "engine/outside/kernel/process.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/monitor/versions.h"
#include "engine/outside/session/descriptors.h"
#include "engine/outside/session/reach.h"
#include "engine/outside/takeover/take.h"
#include "engine/outside/takeover/takeover.h"
#include "engine/outside/takeover/takeover_parts.h"
#include "engine/outside/takeover/taking.h"

#define ROWS	64	/* of more the others are fetched as ever */
#define PAGE	4096

#define LOOKS		8	/* at who asks, each time */
#define TRIES		8	/* so often, of one that says that it dies */
#define SPINS_COMES	2000	/* until it asks: it has rung before it looks at its numbers */
#define SPINS		3000	/* of the loop, before it sleeps: the thread runs */
#define LOOK_US		1000	/* that it waits for: who asks, */
#define ALL_US		100000	/* and what that has; what is lost is time */

enum ahead_state {
	AHEAD_NOT,	/* the row is nobody's */
	AHEAD_TAKEN,	/* a bell's thread has it */
	AHEAD_LOOKS,	/* it looks who asks */
	AHEAD_FOUND,	/* the request is there; what its process has is being looked up */
	AHEAD_ALL,	/* the row is the loop's */
};

static struct ahead {
	const struct version *version;
	struct request r;
	uint64_t open[STANDING_TOLD];
	int directory;		/* or -1 */
	unsigned n;
	struct ahead_row row[ROWS];
} known;

static uint32_t state;		/* enum ahead_state; futex */
static pid_t looker, home;	/* who looks, of its process */

/* --- by the thread ---------------------------------------------------------------------- */

/*
 * Its name would say so, too, and is dearer.  An epoll set has no descriptor of ours in it, and
 * nothing else can be asked for one; it may wait for who waits in it.
 */
static bool is_epoll(int fd, int ours)
{
	return epoll_ctl(fd, EPOLL_CTL_DEL, ours, NULL) < 0 && errno == ENOENT;
}

static void row_look(struct ahead *a, int pidfd, dev_t pidfds, int number)
{
	struct ahead_row *row = &a->row[a->n];
	struct stat st;

	*row = (struct ahead_row){ .number = number,
				   .fd = (int)syscall(SYS_pidfd_getfd, pidfd, number, 0) };
	if (row->fd < 0)
		return;
	row->kind = STATE_plain;
	if (!descriptor_plain(row->fd, pidfds, &st)) {
		row->kind = is_epoll(row->fd, pidfd) ? STATE_epoll : kind_of(row->fd);
	} else {
		row->ino = st.st_ino;
		row->locks = locks_lockable(&st) && locks_may(a->r.pid, number, row->fd, &st);
	}
	a->n++;
}

static void rows_look(struct ahead *a)
{
	int pidfd = (int)syscall(SYS_pidfd_open, a->r.pid, 0);
	dev_t pidfds = pidfd < 0 ? 0 : pidfds_of(pidfd);

	for (int i = 0; pidfd >= 0 && i < STANDING_TOLD * 64 && a->n < ROWS; i++)
		if (a->open[i / 64] >> i % 64 & 1)
			row_look(a, pidfd, pidfds, i);
	if (pidfd >= 0)
		close(pidfd);
}

static void state_set(enum ahead_state is)
{
	PUBLISH(ahead_state, &state, is);
	syscall(SYS_futex, &state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static enum ahead_state state_now(void)
{
	return CONSUME(ahead_state, &state);
}

static void all_look(struct ahead *a)
{
	const uint64_t *told = a->r.call;

	a->directory = -1;
	a->n = 0;
	if (a->r.pid != a->r.tid)
		return;
	for (unsigned i = 0; i < STANDING_TOLD; i++)
		a->open[i] = told[2 * STANDING_TOLD] ? told[2 * i] : 0;
	rows_look(a);
	a->directory = directory_open(a->r.pid);
}

/* Those that ask, one after the other. */
static bool crash_look(struct ahead *a, unsigned *looks)
{
	const struct version *v = a->version;

	for (uint32_t i = 0; *looks && i < version_slots(v); i += 64) {
		uint64_t asking = __atomic_load_n(&v->area->asking[i / 64], __ATOMIC_RELAXED);

		for (; *looks && asking; asking &= asking - 1, (*looks)--)
			if (asker_look(v, i + (uint32_t)__builtin_ctzll(asking), &a->r) ==
			    ASKER_IS && a->r.kind == REQ_CRASHED)
				return true;
	}
	return false;
}

static bool crash_find(struct ahead *a)
{
	unsigned looks = LOOKS;

	for (unsigned i = cpus_several() ? SPINS_COMES : 1; i && looks; i--) {
		if (crash_look(a, &looks))
			return true;
		__builtin_ia32_pause();
	}
	return false;
}

static bool leads_others(const struct version *v)
{
	const struct conduct *c = __atomic_load_n(&v->monitor->conduct, __ATOMIC_RELAXED);

	return c && CONSUME(conduct_bits, &c->following) &&
	       CONSUME(conduct_leader, &c->leader) == v->index;
}

static bool is_dying(const struct version *v)
{
	static struct { const struct version *v; uint64_t said; unsigned tries; } last;
	uint64_t said = __atomic_load_n(&v->area->crash_ns, __ATOMIC_RELAXED);

	if (last.v != v || last.said != said)
		last.tries = 0;
	last.v = v;
	last.said = said;
	return said && last.tries++ < TRIES;
}

bool ahead_dies(const struct version *v)
{
	uint32_t none = AHEAD_NOT;
	bool dies;

	if (!leads_others(v) || !__atomic_load_n(&v->area->crash_ns, __ATOMIC_RELAXED) ||
	    !BOTH_IF(ahead_state, &state, &none, AHEAD_TAKEN))
		return false;
	dies = is_dying(v);
	__atomic_store_n(&looker, gettid(), __ATOMIC_RELAXED);
	known.version = v;
	PUBLISH(ahead_state, &state, dies ? AHEAD_LOOKS : AHEAD_NOT);
	return dies;
}

void ahead_foresee(const struct version *v)
{
	uint64_t one = 1;

	MUST(state_now() == AHEAD_LOOKS && known.version == v);
	if (!crash_find(&known)) {
		state_set(AHEAD_NOT);
		return;
	}
	state_set(AHEAD_FOUND);
	all_look(&known);
	state_set(AHEAD_ALL);
	/* If nobody wants it the loop is to close it. */
	if (write(v->monitor->bell_fd, &one, sizeof(one)) < 0)
		return;
}

/* A copy of the monitor has none of its threads. */
void ahead_open(void)
{
	home = getpid();
	state = AHEAD_NOT;
}

bool ahead_is_deaf(void)
{
	enum ahead_state is = state_now();

	return is != AHEAD_NOT && is != AHEAD_ALL;
}

/* --- in the loop ------------------------------------------------------------------------ */

static void rows_close(struct ahead *a)
{
	int fd[ROWS + 1];
	unsigned n = 0;

	for (unsigned i = 0; i < a->n; i++)
		if (a->row[i].fd >= 0)
			fd[n++] = a->row[i].fd;
	if (a->directory >= 0)
		fd[n++] = a->directory;
	descriptors_leave(a->r.pid, fd, n);
}

void ahead_ready(void)
{
	uintptr_t first = (uintptr_t)&known & ~(uintptr_t)(PAGE - 1);

	/* It is the thread's to write. */
	madvise((void *)first, (uintptr_t)(&known + 1) - first, MADV_POPULATE_WRITE);
}

/* Whose request the takeover is about; pid 0: nobody's. */
static struct { pid_t pid; uint32_t slot, serial; } wanted;
static bool given;		/* the request that is known */
static bool waited;		/* for it once already */

/* The thread comes out of this state. */
static bool state_over(enum ahead_state is, uint64_t limit_us)
{
	const struct timespec limit = { 0, (long)limit_us * 1000 };

	for (unsigned i = is == AHEAD_LOOKS && cpus_several() ? SPINS : 0; i; i--) {
		if (state_now() != is)
			return true;
		__builtin_ia32_pause();
	}
	if (state_now() == is && !waited) {
		pid_t tid = __atomic_load_n(&looker, __ATOMIC_RELAXED), pid;

		syscall(SYS_futex, &state, FUTEX_WAIT_PRIVATE, is, &limit, NULL, 0);
		waited = state_now() == is;
		pid = __atomic_load_n(&known.r.pid, __ATOMIC_RELAXED);
		if (waited && pid && thread_state(home, tid) != 'R')
			reach_waited(pid, (unsigned)(limit_us / 1000));
	}
	return state_now() != is;
}

void ahead_end(void)
{
	wanted.pid = 0;
	if (state_now() != AHEAD_ALL)
		return;
	rows_close(&known);
	given = waited = false;
	PUBLISH(ahead_state, &state, AHEAD_NOT);
}

/* It has been answered if its slot's answers are more than it had seen. */
static bool is_asked(const struct version *v, const struct request *r)
{
	return r->key == v->key &&
	       CONSUME(slot_asked, &v->area->slot[r->slot].asked) == RS_ASKED &&
	       CONSUME(brief_answer, &v->brief->answer[r->slot]) == r->seen;
}

bool ahead_request(const struct version *v, uint32_t slot, struct request *r)
{
	enum ahead_state is = state_now();
	pid_t pid;

	waited = waited && is != AHEAD_NOT;
	if (is < AHEAD_LOOKS || known.version != v || given)
		return false;
	pid = __atomic_load_n(&known.r.pid, __ATOMIC_RELAXED);
	if (is == AHEAD_LOOKS && ((pid && !reach_may(pid)) || !state_over(is, LOOK_US)))
		return false;
	/* What was answered before is known to be, when nothing is left that was posted. */
	if (state_now() < AHEAD_FOUND || known.r.slot != slot || !reach_may(known.r.pid) ||
	    !is_asked(v, &known.r))
		return false;
	given = true;
	*r = known.r;
	return true;
}

void ahead_begin(const struct request *r)
{
	MUST(r->kind == REQ_CRASHED && r->pid > 0);
	wanted.pid = r->pid;
	wanted.slot = r->slot;
	wanted.serial = r->serial;
}

/* Not looked for: the successor may have no other processor than ours to wake on. */
static bool is_known(pid_t pid)
{
	if (state_now() < AHEAD_FOUND || pid != wanted.pid || pid != known.r.pid ||
	    known.r.slot != wanted.slot || known.r.serial != wanted.serial)
		return false;
	return state_now() == AHEAD_ALL || state_over(AHEAD_FOUND, ALL_US);
}

bool ahead_descriptor(pid_t pid, int number, struct ahead_row *row)
{
	for (unsigned i = 0; is_known(pid) && i < known.n; i++)
		if (known.row[i].number == number && known.row[i].fd >= 0) {
			*row = known.row[i];
			known.row[i].fd = -1;
			return true;
		}
	return false;
}

int ahead_directory(pid_t pid)
{
	int fd = is_known(pid) ? known.directory : -1;

	if (fd >= 0)
		known.directory = -1;
	return fd;
}
