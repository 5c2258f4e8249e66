/*
 * A fault is taken back where the request's own thread made it, and all that goes on is in that
 * thread.  Refused, by a line on standard error, and deadly as without us:
 *
 *	a request that is over (seam_end()), or a checkpoint that was lost
 *	a signal that another process has sent
 *	a fault in another thread, in a child, or before the first request
 *	a fault in a handler, whose signal would be forgotten: signals are blocked that were not
 *	where another thread has run since the request began, or runs now: its stack does not go
 *	back.  That is looked at once more when memory is back.  The server's loop is what is
 *	counted from, so who has run between its last wait and the request has run, too
 *
 * All signals are blocked meanwhile: no handler of the program's sees half of it, and a second
 * fault is deadly at once.  Nothing here takes a lock or memory of libc's.
 *
 * A handler that the program sets for such a signal is kept, and runs where nothing is taken back.
 */
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "engine/checkpoint/runtime/kernel.h"
#include "engine/checkpoint/runtime/state.h"
#include "engine/checkpoint/seam/calls.h"
#include "engine/checkpoint/seam/seam.h"

extern char __libc_single_threaded;

struct dirent64_head {
	uint64_t inode, offset;
	uint16_t size;
	uint8_t type;
	char name[];
};

struct stops {
	long waited, all;	/* to wait for something; and because others were to run, too */
};

static struct stops stops_of(int who)
{
	struct rusage usage;

	KERNEL_2(SYS_getrusage, who, &usage);
	return (struct stops){ usage.ru_nvcsw, usage.ru_nvcsw + usage.ru_nivcsw };
}

/* Who is stopped at each call (strace) waits there, and never gets two that agree. */
#define STOPS_TRIES	8

/* How often the other threads have stopped, for whatever: of all, without our own.  -1: it is not
 * known.  Where others are to run on our processor we try until two calls come together. */
static long stops(void)
{
	struct stops own = stops_of(RUSAGE_THREAD), all, before;

	for (int tries = 0; tries < STOPS_TRIES; tries += own.waited != before.waited) {
		before = own;
		all = stops_of(RUSAGE_SELF);
		own = stops_of(RUSAGE_THREAD);
		if (own.all == before.all)
			return all.all - own.all;
	}
	return -1;
}

/* A follower's threads are woken now and then while they wait: it knows better who has run. */
static long others_now(int begins)
{
	return back->follows ? KERNEL_2(ROLLBACK_CALL, ROLLBACK_OTHERS, begins) : stops();
}

void request_begins(void)
{
	if (!seam->stood || state->called || back->follows) {
		state->called = 0;
		seam->alone = __libc_single_threaded;
		seam->others = seam->alone ? 0 : others_now(1);
		KERNEL_4(SYS_rt_sigprocmask, SIG_SETMASK, NULL, &seam->mask, MASK_BYTES);
		seam->stood = 1;
	}
	back->opened = 0;
	back->spoilt = 0;
	back->handlers_then = back->handlers;
}

/* A thread of /proc/self/task sleeps.  One that is no more does. */
static int sleeps(int task, const char *name)
{
	char path[40] = "", text[200];
	const char *end;
	ssize_t n = 0;
	int fd;

	strncat(path, name, 20);
	strcat(path, "/stat");
	fd = (int)KERNEL_3(SYS_openat, task, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 1;
	n = KERNEL_3(SYS_read, fd, text, sizeof(text));
	KERNEL_1(SYS_close, fd);
	end = n > 0 ? memrchr(text, ')', n) : NULL;
	return !end || (end + 2 < text + n && end[2] == 'S');
}

/* All but one, which is who asks; by what name it knows itself does not matter. */
static int others_sleep(int task)
{
	char room[4096];
	long n, at;
	int awake = 0;

	while ((n = KERNEL_3(SYS_getdents64, task, room, sizeof(room))) > 0)
		for (at = 0; at < n; at += ((struct dirent64_head *)(room + at))->size) {
			const char *name = ((struct dirent64_head *)(room + at))->name;

			if (*name != '.' && !sleeps(task, name))
				awake++;
		}
	return awake == 1 && n == 0;
}

/* Who had stopped before and has not again sleeps still, in the same call of the kernel's. */
int others_stood(void)
{
	int task, all;

	if (__libc_single_threaded)
		return seam->alone;
	if (back->follows)
		return seam->others >= 0 && others_now(0) == seam->others;
	task = (int)KERNEL_3(SYS_openat, AT_FDCWD, "/proc/self/task",
			     O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (seam->alone || task < 0)
		return 0;
	all = others_sleep(task);
	KERNEL_1(SYS_close, task);
	return all && seam->others >= 0 && stops() == seam->others;
}

static const char *refused(const siginfo_t *info, const ucontext_t *at)
{
	if (info->si_code <= 0 && info->si_pid != getpid())
		return "another process has sent it";
	if (gettid() != back->owner)
		return "it came in another thread than requests, in a child, or before the first";
	if (!back->open)
		return (const char *)back->ended;
	if (memcmp(&at->uc_sigmask, &seam->mask, MASK_BYTES))
		return "other signals are blocked: it came in a handler";
	return others_stood() ? NULL : "another thread has run meanwhile";
}

void die_of(int sig)
{
	sigset_t set;

	signal(sig, SIG_DFL);
	syscall(SYS_tgkill, getpid(), gettid(), sig);
	sigemptyset(&set);
	sigaddset(&set, sig);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static const int deadly[DEADLY] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT };

/* What the program has set for it, where we have its place; null: nothing of the kind. */
static struct sigaction *theirs(int sig)
{
	for (int n = 0; n < DEADLY; n++)
		if (deadly[n] == sig && seam->watches & 1u << n)
			return &seam->theirs[n];
	return NULL;
}

/* From here on it is the program's.  A fault comes once more as we return. */
static void go_on(int sig, int again)
{
	struct sigaction *its = theirs(sig);

	if (!its || its->sa_handler == SIG_DFL || its->sa_handler == SIG_IGN) {
		die_of(sig);
		return;
	}
	sigaction(sig, its, NULL);
	seam->watches &= ~(1u << (its - seam->theirs));
	if (!again)
		syscall(SYS_tgkill, getpid(), gettid(), sig);
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
	const char *why = refused(info, context);

	seam->sig = sig;
	if (!why) {
		mve_checkpoint_restore();
		back->open = 0;
		why = mve_checkpoint_why();
	}
	seam_say("a fault is not taken back: ", why);
	go_on(sig, info->si_code > 0);
}

int mve_seam_sigaction(int sig, const struct sigaction *action, struct sigaction *old)
{
	struct sigaction *its = theirs(sig);

	seam_written(old, sizeof(*old));
	if (!its)
		return sigaction(sig, action, old);
	if (old)
		*old = *its;
	if (action)
		*its = *action;
	return 0;
}

/* Which signals are to interrupt calls where signal() has set their handler.  libc has its own such
 * set, which the program's plain bodies know alone. */
static sigset_t interrupting;

sighandler_t mve_seam_signal(int sig, sighandler_t handler)
{
	struct sigaction action = { .sa_handler = handler }, old;

	if (state->plain || handler == SIG_ERR)
		return signal(sig, handler);
	sigaddset(&action.sa_mask, sig);
	if (sigismember(&interrupting, sig) == 0)
		action.sa_flags = SA_RESTART;
	return mve_seam_sigaction(sig, &action, &old) ? SIG_ERR : old.sa_handler;
}

#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wdeprecated-declarations"	/* libc's says to use sigaction */
int mve_seam_siginterrupt(int sig, int interrupts)
{
	struct sigaction action;

	if (state->plain)
		return siginterrupt(sig, interrupts);
	if (mve_seam_sigaction(sig, NULL, &action))
		return -1;
	seam_written(&interrupting, sizeof(interrupting));
	if (interrupts) {
		sigaddset(&interrupting, sig);
		action.sa_flags &= ~SA_RESTART;
	} else {
		sigdelset(&interrupting, sig);
		action.sa_flags |= SA_RESTART;
	}
	return mve_seam_sigaction(sig, &action, NULL);
}
#pragma clang diagnostic pop

void faults_watch(void)
{
	struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	stack_t stack = { .ss_sp = seam_tables->stack, .ss_size = sizeof(seam_tables->stack) };

	sigfillset(&action.sa_mask);
	sigaltstack(&stack, NULL);
	for (int n = 0; n < DEADLY; n++)
		sigaction(deadly[n], &action, &seam->theirs[n]);
	seam->watches = (1u << DEADLY) - 1;
}
