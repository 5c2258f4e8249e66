/*
 * Threads that stand.  One that was in a call stands behind it, and the kernel would have
 * begun it again when it let the thread go; since its registers are to be others for a while
 * that is done here, in its registers: they stand before the call.  A call that goes on where
 * it was (restart_syscall: a sleep knows how long it has slept) does so, for nothing that we
 * have the thread do meanwhile changes what the kernel keeps for that.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/abi/table.h"
#include "engine/core/must.h"
#include "engine/outside/attach/crowd.h"
#include "engine/outside/kernel/process.h"
#include "engine/outside/takeover/takeover.h"
#include "engine/outside/session/seize.h"

#define LOOK_US		20	/* between two looks whether a thread stands */
#define LOOKS_AT_ONCE	200	/* so many first, where it should take a few microseconds */
#define SIGNAL_US	2000	/* how long a signal that waits may take to come */

/* The kernel's own results of a call that is to be made again. */
enum { RESTART_SYS = -512, RESTART_NOINTR = -513, RESTART_NOHAND = -514, RESTART_BLOCK = -516 };

/* Calls that a stop cuts short for good, though no handler is run: signal(7) has a list. */
static bool is_cut(long nr)
{
	const struct call_desc *row = call_find(nr);

	return row && call_has(row, TRAIT_WAITS);
}

/* True: it is. */
static bool call_again(struct user_regs_struct *r, bool *cut)
{
	long nr = (long)r->orig_rax, result = (long)r->rax;

	*cut = nr >= 0 && result == -EINTR && is_cut(nr);
	r->orig_rax = (uint64_t)-1;
	if (nr < 0)
		return false;
	if (result == RESTART_BLOCK)
		nr = SYS_restart_syscall;
	else if (result != RESTART_SYS && result != RESTART_NOINTR && result != RESTART_NOHAND &&
		 !*cut)
		return false;
	r->rax = (uint64_t)nr;
	r->rip -= CALL_LEN;
	return true;
}

/*
 * While it is traced a thread is woken by signals, too, that nobody hears: SIGCHLD where there is
 * no handler.  A call that one has cut short is made again, unless a handler runs.
 */
static void cut_keep(pid_t tid)
{
	struct user_regs_struct regs;

	if (ptrace(PTRACE_GETREGS, tid, 0, &regs) < 0 || (long)regs.orig_rax < 0 ||
	    (long)regs.rax != -EINTR || !is_cut((long)regs.orig_rax))
		return;
	regs.rax = (uint64_t)RESTART_NOHAND;
	ptrace(PTRACE_SETREGS, tid, 0, &regs);
}

/*
 * 1: it stands as it is wanted to; 0: not yet, and it goes on; or a negative errno.  Whatever
 * a thread stops for takes back that it was asked to stand: so it is asked again, if it is to.
 */
static int stop_look(pid_t tid, int status, bool ask)
{
	int event = status >> 16, sig = WSTOPSIG(status);

	if (!WIFSTOPPED(status))
		return -ESRCH;
	if (event == PTRACE_EVENT_STOP)
		return sig == SIGTRAP ? 1 : -EALREADY;
	if (sig == (SIGTRAP | 0x80))	/* it was let run to a call */
		event = -1;
	if (!event)
		cut_keep(tid);
	if (ask && ptrace(PTRACE_INTERRUPT, tid, 0, 0) < 0)
		return -errno;
	/* A signal on its way: it gets it, and stands then. */
	return ptrace(PTRACE_CONT, tid, 0, event ? 0 : sig) < 0 ? -errno : 0;
}

static int stop_wait(struct stander *s, uint64_t until_us)
{
	int status, result = 0;

	s->runs = true;
	while (!result) {
		pid_t got = waitpid(s->tid, &status, WNOHANG | __WALL);

		if (got < 0)
			return -errno;
		if (got)
			result = stop_look(s->tid, status, true);
		else if (now_us() > until_us)
			return -ETIME;
		else
			usleep(LOOK_US);
	}
	s->runs = false;
	return result < 0 ? result : 0;
}

uint64_t stander_waits(const struct crowd *c, pid_t tid)
{
	unsigned long own = 0, shared = 0, blocked = 0;
	char path[64], line[256];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", c->pid, tid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		sscanf(line, "SigPnd: %lx", &own);
		sscanf(line, "ShdPnd: %lx", &shared);
		sscanf(line, "SigBlk: %lx", &blocked);
	}
	if (f)
		fclose(f);
	return (own | shared) & ~blocked;
}

static int stander_learn(struct stander *s)
{
	if (ptrace(PTRACE_GETREGS, s->tid, 0, &s->regs) < 0 ||
	    ptrace(PTRACE_GETSIGMASK, s->tid, 8, &s->mask) < 0)
		return -errno;
	/* A kernel that does not say has none. */
	if (ptrace(PTRACE_GET_RSEQ_CONFIGURATION, s->tid, sizeof(s->rseq), &s->rseq) < 0)
		s->rseq = (struct __ptrace_rseq_configuration){ 0 };
	s->again = call_again(&s->regs, &s->cut);
	return 0;
}

/*
 * A call that the stop has cut short: if the signal runs a handler here that ends the call, and
 * if another thread gets it the call is made again.
 */
static int cut_waits(const struct stander *s)
{
	struct user_regs_struct regs = s->regs;

	if (!s->cut)
		return 0;
	regs.orig_rax = regs.rax;
	regs.rax = (uint64_t)RESTART_NOHAND;
	regs.rip += CALL_LEN;
	return ptrace(PTRACE_SETREGS, s->tid, 0, &regs) < 0 ? -errno : 0;
}

/* It goes on until it has the signal; asked at once, it would stand before that. */
static int signal_come(const struct stander *s)
{
	uint64_t until_us = now_us() + SIGNAL_US;
	int status, result = cut_waits(s);
	pid_t tid = s->tid;

	if (!result && ptrace(PTRACE_CONT, tid, 0, 0) < 0)
		result = -errno;

	while (!result && now_us() < until_us) {
		if (waitpid(tid, &status, WNOHANG | __WALL) > 0) {
			result = stop_look(tid, status, false);
			break;
		}
		usleep(LOOK_US);
	}
	return result < 0 ? result : ptrace(PTRACE_INTERRUPT, tid, 0, 0) < 0 ? -errno : 0;
}

/*
 * It stands, and so that it may be given other registers: where a signal has ended a call, and
 * has yet to come, the kernel is to say first what that call has come to.
 */
static int stander_wait(struct crowd *c, struct stander *s, uint64_t until_us)
{
	int result = stop_wait(s, until_us);

	if (!result)
		result = stander_learn(s);
	while (!result && s->again && stander_waits(c, s->tid)) {
		if (now_us() > until_us)
			return -ETIME;
		result = signal_come(s);
		if (!result)
			result = stop_wait(s, until_us);
		if (!result)
			result = stander_learn(s);
	}
	return result;
}

static bool is_known(const struct crowd *c, pid_t tid)
{
	for (unsigned i = 0; i < c->n; i++)
		if (c->stander[i].tid == tid)
			return true;
	return false;
}

/* Has it children?  Of what they come to their parent's thread is told, and main of all else. */
static bool is_told(const struct crowd *c, pid_t tid)
{
	char path[64];
	int fd, got = 0;
	char byte;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", c->pid, tid);
	fd = tid == c->pid ? -1 : open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		got = (int)read(fd, &byte, 1);
		close(fd);
	}
	return tid == c->pid || got > 0;
}

static void stander_add(struct crowd *c, pid_t tid)
{
	if (c->n == c->room) {
		c->room = c->room ? 2 * c->room : 16;
		c->stander = realloc(c->stander, c->room * sizeof(*c->stander));
		MUST(c->stander);
	}
	c->stander[c->n++] = (struct stander){ .tid = tid, .told = is_told(c, tid) };
}

/* The kernel lets nobody have one that is about to end; which it says as if it were another's. */
static bool is_ending(const struct crowd *c, pid_t tid)
{
	return thread_ended(c->pid, tid) || !thread_has_memory(c->pid, tid);
}

/*
 * Seizes each that is not known; how many there were, or a negative errno.  None is asked to
 * stand before all are seized: what the process ignores is no longer dropped when it comes for a
 * thread that is traced, and goes to one that does not stand, whose call it cuts short.
 */
static int tasks_seize(struct crowd *c)
{
	char name[32];
	struct dirent *e;
	int found = 0, result = 0;
	DIR *d;

	snprintf(name, sizeof(name), "/proc/%d/task", c->pid);
	d = opendir(name);
	if (!d)
		return errno == ENOENT ? -ESRCH : -errno;
	while (!result && (e = readdir(d))) {
		pid_t tid = atoi(e->d_name);

		if (tid <= 0 || is_known(c, tid) || thread_ended(c->pid, tid))
			continue;
		result = thread_seize(tid, PTRACE_O_TRACESYSGOOD);
		if (result == -ESRCH || (result == -EPERM && is_ending(c, tid))) {
			result = 0;	/* it has just ended */
			continue;
		}
		if (!result)
			stander_add(c, tid);
		found++;
	}
	closedir(d);
	return result ? result : found;
}

/* One that has ended meanwhile is found when it is waited for. */
static int standers_ask(const struct crowd *c, unsigned from)
{
	int result = 0;

	for (unsigned i = from; i < c->n; i++)
		if (ptrace(PTRACE_INTERRUPT, c->stander[i].tid, 0, 0) < 0 && errno != ESRCH)
			result = -errno;
	return result;
}

static void stander_forget(struct crowd *c, unsigned i)
{
	MUST(i < c->n);
	memmove(&c->stander[i], &c->stander[i + 1], (c->n - i - 1) * sizeof(*c->stander));
	c->n--;
}

/*
 * Those that were asked to come to stand, whatever became of the others: how a call of theirs
 * was cut short is seen only then, and it would end so where they are let go.
 */
static int standers_wait(struct crowd *c, unsigned from, uint64_t until_us)
{
	int result = 0;

	while (from < c->n) {
		int one = stander_wait(c, &c->stander[from], until_us);

		if (one == -ESRCH || one == -ECHILD) {
			stander_forget(c, from);
			continue;
		}
		result = result ? result : one;
		from++;
	}
	return result;
}

int crowd_look(struct crowd *c, uint64_t until_us)
{
	int found = 1, result = 0;

	while (!result && found > 0) {
		unsigned from = c->n;
		int asked;

		found = tasks_seize(c);
		asked = standers_ask(c, from);
		result = standers_wait(c, from, until_us);
		result = found < 0 ? found : result ? result : asked;
	}
	return result ? result : c->n ? 0 : -ESRCH;
}

int crowd_stop(struct crowd *c, pid_t pid, uint64_t until_us)
{
	int result;

	*c = (struct crowd){ .pid = pid };
	result = crowd_look(c, until_us);
	if (result)
		crowd_go(c);
	return result;
}

/* It is to stand now: one that runs nobody can let go, nor give other registers. */
static int step_late(pid_t tid)
{
	int status;

	ptrace(PTRACE_INTERRUPT, tid, 0, 0);
	waitpid(tid, &status, __WALL);
	return -ETIME;
}

struct step_time step_time_begin(const struct crowd *c, pid_t tid)
{
	return (struct step_time){ tid, now_us(), thread_used_us(c->pid, tid) };
}

bool step_time_is_late(const struct step_time *t)
{
	return now_us() - t->began_us > STEP_US;
}

/* No step sleeps: who does has been led astray. */
static bool step_is_over(const struct crowd *c, const struct step_time *t)
{
	return step_time_is_late(t) &&
	       (thread_used_us(c->pid, t->tid) - t->used_us > STEP_US ||
		thread_state(c->pid, t->tid) == 'S');
}

/* Mostly it is there at once: who sleeps meanwhile wakes late. */
static int step_wait(const struct crowd *c, const struct step_time *t, int *status)
{
	pid_t tid = t->tid;

	for (unsigned looks = 0;; looks++) {
		pid_t got = waitpid(tid, status, WNOHANG | __WALL);

		if (got > 0)
			return 0;
		if (got < 0 && errno != EINTR)
			return -errno;
		if (step_is_over(c, t))
			return step_late(tid);
		if (looks < LOOKS_AT_ONCE)
			sched_yield();
		else
			usleep(LOOK_US);
	}
}

int stander_step_call(struct crowd *c, const struct step_time *t)
{
	for (;;) {
		int status, sig, result;

		if (ptrace(PTRACE_SYSCALL, t->tid, 0, 0) < 0)
			return -errno;
		result = step_wait(c, t, &status);
		if (result)
			return result;
		if (!WIFSTOPPED(status))
			return -ESRCH;
		sig = WSTOPSIG(status);
		if (sig == (SIGTRAP | 0x80))
			return 0;
		/* All that can be blocked is; of the others one can only be asked to stop. */
		c->asked_to_stop |= status >> 16 != PTRACE_EVENT_STOP && sig == SIGSTOP;
		if (sig == SIGSEGV || sig == SIGILL || sig == SIGBUS)
			return -EFAULT;
	}
}

/* It goes on as it was: with its call, too. */
static void cut_mend(struct stander *s)
{
	if (s->cut && !s->came)
		ptrace(PTRACE_SETREGS, s->tid, 0, &s->regs);
	s->cut = false;
}

void crowd_let(struct crowd *c, unsigned who)
{
	MUST(who < c->n);
	if (c->stander[who].runs)
		return;
	c->stander[who].runs = true;
	cut_mend(&c->stander[who]);
	ptrace(PTRACE_CONT, c->stander[who].tid, 0, 0);
}

void crowd_pass(struct crowd *c, uint64_t until_us)
{
	int status;

	for (; now_us() < until_us; usleep(LOOK_US))
		for (unsigned i = 0; i < c->n; i++)
			if (c->stander[i].runs &&
			    waitpid(c->stander[i].tid, &status, WNOHANG | __WALL) > 0)
				stop_look(c->stander[i].tid, status, false);
}

int crowd_catch(struct crowd *c, unsigned who, uint64_t until_us)
{
	struct stander *s = &c->stander[who];
	int result = ptrace(PTRACE_INTERRUPT, s->tid, 0, 0) < 0 ? -errno : 0;

	MUST(s->runs);
	s->came = false;
	if (!result)
		result = stander_wait(c, s, until_us);
	if (result != -ESRCH && result != -ECHILD)
		return result;
	stander_forget(c, who);
	return 0;
}

/*
 * Where the kernel has yet to begin its call it stands before that, if it is given registers:
 * else they would be those of a call that was made, and not known (-ENOSYS).
 */
static int entry_learn(struct stander *s)
{
	struct __ptrace_syscall_info info = { 0 };
	int result = stander_learn(s);

	if (result || ptrace(PTRACE_GET_SYSCALL_INFO, s->tid, sizeof(info), &info) < 0 ||
	    info.op != PTRACE_SYSCALL_INFO_ENTRY)
		return result;
	s->regs.rax = info.entry.nr;
	s->regs.rip -= CALL_LEN;
	return 0;
}

int crowd_step_call(struct crowd *c, unsigned who, uint64_t until_us)
{
	struct stander *s = &c->stander[who];
	int status;
	pid_t got;

	MUST(!s->runs);
	cut_mend(s);
	if (ptrace(PTRACE_SYSCALL, s->tid, 0, 0) < 0)
		return -errno;
	s->runs = true;
	while (!(got = waitpid(s->tid, &status, WNOHANG | __WALL)) && now_us() < until_us)
		usleep(LOOK_US);
	if (!got)
		return -ETIME;
	if (got < 0 || !WIFSTOPPED(status))
		return -ESRCH;
	s->runs = s->came = false;
	if (WSTOPSIG(status) != (SIGTRAP | 0x80)) {
		s->runs = true;
		if (!(status >> 16))
			cut_keep(s->tid);
		ptrace(PTRACE_CONT, s->tid, 0, status >> 16 ? 0 : WSTOPSIG(status));
		return -EINTR;
	}
	return entry_learn(s);
}

int crowd_step(struct crowd *c, unsigned who)
{
	struct stander *s = &c->stander[who];
	uint64_t mask = s->mask, blocked = ~0ull;
	int status, result = 0;

	if (ptrace(PTRACE_SETSIGMASK, s->tid, 8, &blocked) < 0 ||
	    ptrace(PTRACE_SINGLESTEP, s->tid, 0, 0) < 0 ||
	    waitpid(s->tid, &status, __WALL) < 0 || !WIFSTOPPED(status))
		return -ESRCH;
	result = ptrace(PTRACE_GETREGS, s->tid, 0, &s->regs) < 0 ? -errno : 0;
	s->regs.orig_rax = (uint64_t)-1;
	return stander_set(s, &s->regs, mask) ? -ESRCH : result;
}

/* The mask first: killed between the two, the thread has yet to come to its registers. */
int stander_set(struct stander *s, const struct user_regs_struct *regs, uint64_t mask)
{
	if (ptrace(PTRACE_SETSIGMASK, s->tid, 8, &mask) < 0 ||
	    ptrace(PTRACE_SETREGS, s->tid, 0, regs) < 0)
		return -errno;
	s->regs = *regs;
	s->mask = mask;
	return 0;
}

/* One that we have not changed the kernel takes back to its call by itself. */
static void stander_go(struct stander *s)
{
	cut_mend(s);
	if (ptrace(PTRACE_DETACH, s->tid, 0, 0) < 0 && errno == ESRCH)
		waitpid(s->tid, NULL, WNOHANG | __WALL);
}

static void standers_go(struct crowd *c, bool told)
{
	for (unsigned i = c->n; i--;)
		if (!c->stander[i].runs && c->stander[i].told == told) {
			stander_go(&c->stander[i]);
			stander_forget(c, i);
		}
}

/* First those for whom signals come: as long as one is traced the others meet what they ignore. */
void crowd_release(struct crowd *c)
{
	standers_go(c, true);
	standers_go(c, false);
}

void crowd_go(struct crowd *c)
{
	crowd_release(c);
	for (unsigned i = c->n; i--;)
		crowd_catch(c, i, UINT64_MAX);
	crowd_release(c);
	if (c->asked_to_stop)
		kill(c->pid, SIGSTOP);
	free(c->stander);
	c->stander = NULL;
	c->n = c->room = 0;
}
