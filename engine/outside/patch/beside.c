/*
 * Work beside the loop, by a child each.  Whoever needs what comes of it is held or asks
 * again; all others are served meanwhile.  That a child died of it, or had no end, is an
 * answer like others.  One that cannot even be killed, since it waits in the kernel for a
 * file system, keeps its row and nothing else.
 *
 * A child has none of our descriptors but the one it is given, and no area (versions.c): it
 * is no process of a version.  It goes when we go, and before anybody else when memory is
 * short.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/outside/session/near.h"
#include "engine/outside/patch/beside.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/monitor/say.h"

/* Limit (work beside the loop): at a time. Beyond: who needs more waits until one has ended. */
#define ROWS	8
/*
 * Whoever makes a file system that never answers holds up no near file, and alone none of
 * another user's.
 */
/* Limit (work beside the loop): on files that may let us wait. Beyond: who needs more waits. */
#define FAR_ROWS	4
/* Limit (work beside the loop): on such files, for one user. Beyond: who needs more waits. */
#define FAR_EACH	2

static struct row {
	pid_t pid;		/* 0: the row is free */
	uint64_t until_ms;	/* 0: its end has been told, and it still has to die */
	const struct beside *what;
	uid_t user;		/* see beside_start */
	void *result;
	_Alignas(16) char about[BESIDE_ABOUT];
	size_t len;
} rows[ROWS];
static bool begun;

void beside_begin(void)
{
	begun = true;
	near_waits(false);
}

bool beside_begun(void)
{
	return begun;
}

/* --- in the child --------------------------------------------------------------------- */

static void die_first(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd >= 0 && write(fd, "1000", 4) == 4)
		close(fd);
}

static _Noreturn void child(const struct row *row, int fd, pid_t monitor)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != monitor || (fd >= 0 && dup2(fd, 3) < 0))
		_exit(EXIT_SYSTEM);
	close_range(fd < 0 ? 3 : 4, ~0u, 0);
	die_first();
	say_of_bugs(NULL);	/* what would end is not the monitor */
	near_waits(true);
	row->what->work(row->result, row->about);
	_exit(0);
}

/* --- in the monitor ------------------------------------------------------------------- */

static void row_close(struct row *row)
{
	munmap(row->result, row->what->size);
	*row = (struct row){ 0 };
}

static bool far_may(uid_t user)
{
	unsigned all = 0, own = 0;

	for (const struct row *row = rows; row < rows + ROWS; row++) {
		all += row->pid && row->user != BESIDE_NEAR;
		own += row->pid && row->user == user;
	}
	return all < FAR_ROWS && own < FAR_EACH;
}

static struct row *row_free(uid_t user)
{
	if (user != BESIDE_NEAR && !far_may(user))
		return NULL;
	for (struct row *row = rows; row < rows + ROWS; row++)
		if (!row->pid)
			return row;
	return NULL;
}

bool beside_under_way(const struct beside *what, const void *about, size_t len)
{
	for (const struct row *row = rows; row < rows + ROWS; row++)
		if (row->pid && row->until_ms && row->what == what && row->len == len &&
		    !memcmp(row->about, about, len))
			return true;
	return false;
}

int beside_start(const struct beside *what, int fd, uid_t user, const void *about, size_t len)
{
	struct row *row = row_free(user);
	pid_t monitor = getpid();
	void *result;

	MUST(len <= BESIDE_ABOUT && what->size && what->work && what->end);
	if (!row)
		return -EBUSY;
	MUST(!row->result && !row->until_ms);
	result = mmap(NULL, what->size, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (result == MAP_FAILED)
		return -ENOMEM;
	row->result = result;
	row->what = what;
	row->user = user;
	row->len = len;
	memcpy(row->about, about, len);
	row->pid = fork();
	if (!row->pid)
		child(row, fd, monitor);
	if (row->pid < 0) {
		row_close(row);
		return -ENOMEM;
	}
	row->until_ms = now_ms() + BESIDE_MS;
	return 0;
}

/* Its end may begin others: it is told of a copy. */
static void end_tell(struct row *row, int error)
{
	const struct row was = *row;

	MUST(row->until_ms && error <= 0);	/* told once */
	row->until_ms = 0;
	was.what->end(was.result, was.about, error);
}

bool beside_ended(pid_t pid, int status)
{
	for (struct row *row = rows; row < rows + ROWS; row++) {
		int error = WIFSIGNALED(status) ? -ENOMEM : -EIO;

		if (row->pid != pid)
			continue;
		if (WIFEXITED(status) && !WEXITSTATUS(status))
			error = 0;
		if (row->until_ms)
			end_tell(row, error);
		row_close(row);
		return true;
	}
	return false;
}

bool beside_look(struct monitor *m)
{
	uint64_t now = now_ms(), next = 0;
	bool any = false;

	for (struct row *row = rows; row < rows + ROWS; row++) {
		if (!row->pid || !row->until_ms)
			continue;
		if (now >= row->until_ms) {
			MUST(row->pid > 0);	/* -1 is everybody */
			kill(row->pid, SIGKILL);
			end_tell(row, -ETIME);
			any = true;
		} else if (!next || row->until_ms < next) {
			next = row->until_ms;
		}
	}
	if (next)
		monitor_wake_after(m, (unsigned)(next - now));
	return any;
}

void beside_forget(void)
{
	for (struct row *row = rows; row < rows + ROWS; row++)
		if (row->pid)
			row_close(row);
}
