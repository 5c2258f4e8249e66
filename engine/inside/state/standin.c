/*
 * Stand-ins: where a process has gone on from its image and leads (rewind/), its children are
 * to the kernel none of its, for a copy's parent cannot be chosen: nobody would tell it of
 * their ends.  So each such child has a stand-in, which is its child: a copy of it that does
 * nothing but wait for the real one, and then ends as that did.  What the program waits for
 * is the stand-in, what it sends signals to is the child; it knows one id for both.
 *
 * The stand-in holds no descriptor but two of its own, bears no signal but SIGKILL, and ends
 * when its parent has.  How a process has ended stands in /proc until somebody has collected
 * it, for those with rights; and from Linux 6.15 on whoever holds a pidfd is told behind that.
 */
#include <asm/unistd.h>
#include <linux/close_range.h>
#include <linux/fcntl.h>
#include <linux/poll.h>
#include <linux/prctl.h>
#include <linux/resource.h>
#include <linux/signal.h>
#include <linux/time_types.h>
#include <linux/wait.h>

#include "engine/abi/waits.h"
#include "engine/core/must.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/state/standin.h"

#define STAT_MAX	1024
/* linux/pidfd.h has them from Linux 6.15 on. */
#define INFO_EXIT	8u
#define INFO_ASK	0xc040ff0bul

struct pidfd_asked {
	uint64_t mask, cgroup;
	uint32_t ids[11];
	int32_t exit_code;
};

_Static_assert(sizeof(struct pidfd_asked) == 64, "the size is in the number of the call");

static void mask_set(uint64_t mask, uint64_t *old)
{
	OWN4(__NR_rt_sigprocmask, SIG_SETMASK, &mask, old, sizeof(mask));
}

static uint32_t text_put(char *to, const char *text)
{
	uint32_t n = 0;

	for (; text[n]; n++)
		to[n] = text[n];
	return n;
}

/* The last number of its line in /proc. */
int32_t process_status(int32_t pid)
{
	char path[32], text[STAT_MAX];
	uint32_t at = text_put(path, "/proc/"), digits = 1;
	long fd, len;
	int32_t status = 0;

	for (int32_t rest = pid; rest >= 10; rest /= 10)
		digits++;
	for (uint32_t i = digits; i--; pid /= 10)
		path[at + i] = (char)('0' + pid % 10);
	path[at + digits + text_put(path + at + digits, "/stat")] = 0;
	fd = OWN3(__NR_open, path, O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	len = OWN3(__NR_read, fd, text, sizeof(text));
	for (long i = len - 2, ten = 1; i > 0 && text[i] >= '0' && text[i] <= '9'; i--, ten *= 10)
		status += (int32_t)((text[i] - '0') * ten);
	return status;
}

/* As wait(2) has it. */
static int32_t status_of(int32_t pid, int fd)
{
	int32_t shown = process_status(pid);
	struct __kernel_timespec patience = { WAIT_LONG_NS / SECOND_NS, 0 };
	struct pidfd_asked asked = { .mask = INFO_EXIT };
	struct pollfd gone = { fd, 0, 0 };

	/* A parent that ought to collect it may take its time.  POLLHUP: it has been. */
	if (shown > 0)
		return shown;
	OWN6(__NR_ppoll, &gone, 1, &patience, 0, 0, 0);
	if (OWN3(__NR_ioctl, fd, INFO_ASK, &asked) || !(asked.mask & INFO_EXIT))
		return 0;
	return asked.exit_code;
}

static _Noreturn void end_as(int32_t status)
{
	struct rlimit none = { 0, 0 };
	uint64_t dfl[4] = { 0 };
	int sig = status & 0x7f;

	if (sig) {
		/* The core is the other's. */
		OWN4(__NR_prlimit64, 0, RLIMIT_CORE, &none, 0);
		OWN4(__NR_rt_sigaction, sig, dfl, 0, sizeof(uint64_t));
		OWN2(__NR_kill, OWN0(__NR_getpid), sig);
		mask_set(0, NULL);
	}
	for (;;)
		OWN1(__NR_exit_group, status >> 8 & 0xff);
}

/* `over`: it had ended already, so. */
static _Noreturn void standin_run(int32_t pid, int32_t parent, const int32_t *over)
{
	struct pollfd ends[2] = { { .events = POLLIN }, { .events = POLLIN } };

	OWN2(__NR_prctl, PR_SET_NAME, "mve-stand-in");
	OWN3(__NR_close_range, 0, ~0u, 0);
	if (over)
		end_as(*over);
	ends[0].fd = (int)OWN2(__NR_pidfd_open, pid, 0);
	ends[1].fd = (int)OWN2(__NR_pidfd_open, parent, 0);
	if (ends[1].fd < 0 || OWN0(__NR_getppid) != parent)
		end_as(0);
	while (ends[0].fd >= 0 && !(ends[0].revents | ends[1].revents))
		OWN6(__NR_ppoll, ends, 2, 0, 0, 0, 0);
	if (ends[1].revents)
		end_as(0);
	end_as(ends[0].fd < 0 ? SIGKILL : status_of(pid, ends[0].fd));
}

int32_t standin_make(const struct thread *t, int32_t pid)
{
	/* Its parent, in whose place we are, is about to end: nobody can be asked then. */
	bool over = process_is_over(pid);
	int32_t status = over ? process_status(pid) : 0;
	uint64_t old;
	long made;

	MUST(t == thread_self() && pid > 0);
	mask_set(~0ull, &old);
	made = OWN2(__NR_clone, SIGCHLD, 0);
	if (!made)
		standin_run(pid, t->pid, over && status >= 0 ? &status : NULL);
	/* The program may know already, and ask for it without waiting. */
	if (made > 0 && over)
		OWN6(__NR_waitid, P_PID, made, 0, WEXITED | WNOWAIT, 0, 0);
	mask_set(old, NULL);
	return made > 0 ? (int32_t)made : 0;
}

bool process_is_over(int32_t pid)
{
	struct __kernel_timespec none = { 0, 0 };
	struct pollfd p = { .events = POLLIN };

	p.fd = (int)OWN2(__NR_pidfd_open, pid, 0);
	if (p.fd < 0)
		return true;
	OWN6(__NR_ppoll, &p, 1, &none, 0, 0, 0);
	OWN1(__NR_close, p.fd);
	return p.revents;
}
