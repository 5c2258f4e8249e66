/*
 * Files that are planned beside the loop.
 *
 * A file may be of any size, and lie where nobody answers: a program that maps one must not
 * make failovers, questions and the programs of others wait.  So what the cache does not
 * know is planned by a child, which also looks into the plans on disk and writes there.  It
 * leaves the plan in memory that it shares with us; the cache has it from then on, or why
 * there is none: that the child died of the file, or of its size, or had no end is an answer
 * like others.  Who asked is asked to come again (-EAGAIN) until then, and so is who comes
 * when all are at work: a file without a plan has instructions of the machine (rdtsc) and
 * lock functions that no follower has as its leader.
 *
 * A child has none of our descriptors but the file's, and no area (versions.c): it is no
 * process of a version.  It goes when we go, and before anybody else when memory is short.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/outside/monitor/monitor.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/patch/planner.h"
#include "engine/outside/plan/plan.h"
#include "engine/outside/plan/plan_parts.h"

#define PLANNERS	8	/* at one time; who comes then asks again when one has ended */

enum wanted { CALLS, HOOKS_OF_LIBRARY, HOOKS_OF_STATIC };

/* What a child leaves. */
struct result {
	int error;
	struct hook_plan hooks;
	struct plan plan;	/* and PLAN_SITES_MAX sites */
};

#define RESULT_SIZE	(sizeof(struct result) + PLAN_SITES_MAX * sizeof(struct plan_site))

static struct planner {
	pid_t pid;		/* 0: the row is free */
	struct stat st;		/* of its file */
	enum wanted wanted;
	uint64_t until_ms;
	struct result *result;
} planners[PLANNERS];
static bool begun;

void planner_begin(void)
{
	begun = true;
}

/* --- in the child --------------------------------------------------------------------- */

static void die_first(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd >= 0 && write(fd, "1000", 4) == 4)
		close(fd);
}

static void calls_plan(struct result *result)
{
	struct plan *p = NULL;

	result->error = plan_cached(3, &p);
	if (!result->error)
		memcpy(&result->plan, p, sizeof(*p) + p->n * sizeof(p->sites[0]));
}

static void hooks_plan(enum hook_source source, struct result *result)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/fd/3", path, sizeof(path) - 1);

	result->error = hook_plan_file(3, source, &result->hooks);
	path[n < 0 ? 0 : n] = 0;
	if (!result->error)
		hook_log(path, &result->hooks);
}

static _Noreturn void plan_beside(int fd, pid_t monitor, enum wanted wanted,
				  struct result *result)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != monitor || dup2(fd, 3) < 0)
		_exit(EXIT_SYSTEM);
	close_range(4, ~0u, 0);
	die_first();
	if (wanted == CALLS)
		calls_plan(result);
	else
		hooks_plan(wanted == HOOKS_OF_STATIC ? HOOKS_STATIC : HOOKS_DYNAMIC, result);
	_exit(0);
}

/* --- in the monitor ------------------------------------------------------------------- */

static void planner_close(struct planner *w)
{
	munmap(w->result, RESULT_SIZE);
	*w = (struct planner){ 0 };
}

static struct planner *row_free(void)
{
	for (struct planner *w = planners; w < planners + PLANNERS; w++)
		if (!w->pid)
			return w;
	return NULL;
}

static bool is_under_way(const struct stat *st, enum wanted wanted)
{
	for (const struct planner *w = planners; w < planners + PLANNERS; w++)
		if (w->pid && w->wanted == wanted && plan_same_file(&w->st, st))
			return true;
	return false;
}

static int planner_start(int fd, const struct stat *st, enum wanted wanted)
{
	struct planner *w = row_free();
	pid_t monitor = getpid();

	if (!w)
		return -EAGAIN;
	w->result = mmap(NULL, RESULT_SIZE, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (w->result == MAP_FAILED)
		return -ENOMEM;
	w->pid = fork();
	if (!w->pid)
		plan_beside(fd, monitor, wanted, w->result);
	if (w->pid < 0) {
		planner_close(w);
		return -EBUSY;
	}
	w->st = *st;
	w->wanted = wanted;
	w->until_ms = now_ms() + PLANNER_MS;
	return -EAGAIN;
}

int planner_plan(int fd, struct plan **out)
{
	struct stat st;
	int result;

	if (!begun)
		return plan_cached(fd, out);
	result = plan_known(fd, &st, out);
	if (result != -EAGAIN || is_under_way(&st, CALLS))
		return result;
	return planner_start(fd, &st, CALLS);
}

bool planner_hooks(int fd, const struct stat *st, enum hook_source source)
{
	enum wanted wanted = source == HOOKS_STATIC ? HOOKS_OF_STATIC : HOOKS_OF_LIBRARY;

	return begun && (is_under_way(st, wanted) || planner_start(fd, st, wanted) == -EAGAIN);
}

/* What it left; a plan that it cannot have made is none. */
static int result_read(const struct result *r, struct plan **out)
{
	unsigned n = r->plan.n;

	if (r->error)
		return r->error < 0 && r->error != -EAGAIN ? r->error : -EIO;
	*out = n <= PLAN_SITES_MAX ? plan_new(n) : NULL;
	if (!*out)
		return -ENOMEM;
	memcpy(*out, &r->plan, sizeof(r->plan) + n * sizeof(r->plan.sites[0]));
	(*out)->refs = 1;
	(*out)->n = n;
	return 0;
}

/* What it found, or that it died of the file: there is nothing to hook then. */
static void hooks_end(const struct planner *w, int error)
{
	static struct hook_plan none;

	if (!error && w->result->hooks.n > HOOKS_MAX)
		error = -EIO;
	if (error)
		say_log("hook", "a file of %ld bytes has no hooks: %s", (long)w->st.st_size,
			strerror(-error));
	hook_learn(&w->st, error ? &none : &w->result->hooks);
}

static void calls_end(const struct planner *w, int error)
{
	struct plan *p = NULL;

	if (!error)
		error = result_read(w->result, &p);
	plan_learn(&w->st, p, error);
	plan_free(p);
}

bool planner_ended(pid_t pid, int status)
{
	for (struct planner *w = planners; w < planners + PLANNERS; w++) {
		int error = WIFSIGNALED(status) ? -ENOMEM : -EIO;

		if (w->pid != pid)
			continue;
		if (now_ms() >= w->until_ms)
			error = -ETIME;
		if (WIFEXITED(status) && !WEXITSTATUS(status))
			error = 0;
		if (w->wanted == CALLS)
			calls_end(w, error);
		else
			hooks_end(w, error ? error : w->result->error);
		planner_close(w);
		return true;
	}
	return false;
}

void planner_look(struct monitor *m)
{
	uint64_t now = now_ms(), next = 0;

	for (struct planner *w = planners; w < planners + PLANNERS; w++) {
		if (!w->pid)
			continue;
		if (now >= w->until_ms)
			kill(w->pid, SIGKILL);
		else if (!next || w->until_ms < next)
			next = w->until_ms;
	}
	if (next)
		monitor_wake_after(m, (unsigned)(next - now));
}

void planner_forget(void)
{
	for (struct planner *w = planners; w < planners + PLANNERS; w++)
		if (w->pid)
			planner_close(w);
}
