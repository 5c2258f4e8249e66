/*
 * With MVE_CHECKPOINT_SEAM=N each Nth request has a checkpoint.  A request begins when something
 * has come on a connection that the server has accepted (calls.c).  If the program faults or
 * aborts in it, it is taken back, and the call that brought it fails with ECONNRESET instead: the
 * server closes that connection, as it does whenever a client goes away.  The others never notice.
 * A line on standard error says so.
 *
 * A request ends before the first call that others would see, or that leaves the kernel in a state
 * which the memory of before does not fit: the checkpoint is dropped, and a fault is deadly.  So
 * nothing is taken back that was answered.  What else is refused is said in fault.c.
 *
 * One thread has requests.  Where a second one brings some there are no more checkpoints.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "engine/checkpoint/runtime/kernel.h"
#include "engine/checkpoint/runtime/state.h"
#include "engine/checkpoint/seam/seam.h"
#include "engine/checkpoint/ways/pages.h"

union seam_pages checkpoint_seam_tables __attribute__((aligned(4096)));

/* This thread is the owner. */
static __thread int mine;

void seam_say(const char *what, const char *why)
{
	char line[200] = "mve: checkpoint: ";

	strncat(line, what, 60);
	strncat(line, why, 100);
	strcat(line, "\n");
	if (is_connection(2))	/* of a server that has no standard error */
		return;
	if (write(2, line, strlen(line)) < 0)
		return;
}

/* Once, and not at each request.  The owner drops what is open, when it comes by. */
static void no_more(const char *why)
{
	if (!__atomic_exchange_n(&seam->each, 0, __ATOMIC_RELAXED))
		return;
	back->ended = (uintptr_t)why;
	if (back->held)
		held_say(ROLLBACK_NEVER, why);
	else
		seam_say("there are no more: ", why);
}

void seam_ended(const char *why)
{
	back->ended = (uintptr_t)why;
	back->open = 0;
}

int seam_is_open(void)
{
	return mine && back->open;
}

static void over(const char *why)
{
	seam_ended(why);
	mve_checkpoint_drop();
}

void seam_end(const char *why)
{
	if (!seam_is_open())
		return;
	if (back->follows)
		held_say(ROLLBACK_ENDS, NULL);
	over(why);
}

void seam_waits(void)
{
	if (seam_is_open())
		seam_end("it had gone on to wait");
	else if (mine && seam->each > 0)
		seam_ended("no request had begun since it last waited");
	seam->stood = 0;
}

/* Before: a child would hold the parent's checkpoint. */
static void at_fork(void)
{
	seam_process();
}

/* A child has requests of its own. */
static void in_child(void)
{
	mine = 0;
	back->owner = 0;
	process->has_seam = 1;
}

/* One that libc knows nothing of (vsftpd calls clone).  A twin is none: it has its leader's. */
static void maybe_child(void)
{
	if (process->has_seam || back->held)
		return;
	if (mine && back->open)
		over("it had made a process");
	in_child();
	pages_own();
}

#define VARIABLE	"MVE_CHECKPOINT_SEAM"

/* Below 0: it is no number. */
static long wanted(void)
{
	const char *each = getenv(VARIABLE);
	char *end;
	long n;

	if (!each)
		return back->held;
	n = strtol(each, &end, 10);
	return *end || n < 0 ? -1 : n;
}

int seam_wanted(void)
{
	return wanted() > 0;
}

__attribute__((constructor)) static void seam_begin(void)
{
	seam->each = wanted();
	if (seam->each > 0 && state->plain)
		no_more(state->plain_why);
	seam->left = 1;
	seam_ended("no request had begun");
	if (seam->each < 0)
		no_more(VARIABLE " is not a number of requests");
	if (seam->each <= 0)
		return;
	pthread_atfork(at_fork, NULL, in_child);
	process->has_seam = 1;
	if (back->held) {
		back->stack = (uintptr_t)seam_tables->stack + sizeof(seam_tables->stack);
		back->go = (uintptr_t)held_go;
		held_begin();
	} else {
		faults_watch();
	}
}

/* One thread becomes the owner, at its first request. */
static int is_owner(void)
{
	pid_t nobody = 0;

	maybe_child();
	if (mine)
		return 1;
	if (!__atomic_compare_exchange_n(&back->owner, &nobody, gettid(), 0, __ATOMIC_RELAXED,
					 __ATOMIC_RELAXED))
		return 0;
	return mine = 1;
}

static int may_begin(void)
{
	if (!is_owner())
		no_more("requests come in more than one thread");
	else if (state->depth)
		no_more("the program opens checkpoints itself");
	return seam->each > 0;
}

/* Back in the call that brought it; signals are blocked since the fault. */
static int taken_back(void)
{
	static const char ran[] = "another thread ran while it was taken back";

	seam_ended("no request had begun");
	if (!others_stood()) {
		if (back->held)
			held_say(ROLLBACK_NOT, ran);
		else
			seam_say(ran, "");
		die_of(seam->sig);
	}
	if (back->held)
		held_undone();
	else
		seam_say("a request was taken back: SIG", sigabbrev_np(seam->sig));
	KERNEL_4(SYS_rt_sigprocmask, SIG_SETMASK, &seam->mask, NULL, MASK_BYTES);
	errno = ECONNRESET;
	return -1;
}

/* For the report: the bytes where they lie, or all parts' in a place that does not go back. */
static void request_shown(const struct iovec *parts, size_t size)
{
	size_t at = 0;

	back->bytes = (uintptr_t)parts->iov_base;
	back->size = size;
	if (size <= parts->iov_len)
		return;
	back->bytes = (uintptr_t)seam_tables->gathered;
	back->size = size < GATHERED_MAX ? size : GATHERED_MAX;
	for (size_t n; at < back->size; at += n, parts++) {
		n = parts->iov_len < back->size - at ? parts->iov_len : back->size - at;
		memcpy(seam_tables->gathered + at, parts->iov_base, n);
	}
}

static int request(int fd, const struct iovec *parts, size_t size)
{
	int opened;

	request_begins();
	back->fd = fd;
	request_shown(parts, size);
	if (back->held && !seam->begun)
		held_say(ROLLBACK_BEGUN, NULL);
	seam->begun = 1;
	state->whose = (uint32_t)fd + 1;
	opened = mve_checkpoint_open();
	if (opened == 1)
		return taken_back();
	if (opened < 0)
		no_more(mve_checkpoint_why());
	else
		back->open = 1;
	if (state_tables->levels[0].looked)	/* the loop is a library's: it waits unseen */
		seam->stood = 0;
	return 0;
}

int seam_came(int fd, const struct iovec *parts, size_t size, int more)
{
	/* What brought the next one was the leader's next call, too: it did not go back. */
	if (seam_is_open())
		over("it was over");
	if (!may_begin())
		return 0;
	if (back->refuse && held_refuses(fd, parts, size, more)) {
		errno = ECONNRESET;
		return -1;
	}
	if (--seam->left > 0) {
		seam_ended("only each Nth request has a checkpoint (" VARIABLE ")");
		return 0;
	}
	seam->left = seam->each;
	return request(fd, parts, size);
}
