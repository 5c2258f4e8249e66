/*
 * Files that are planned beside the loop.
 *
 * A file may be of any size, and lie where nobody answers: a program that maps one must not
 * make failovers, questions and the programs of others wait.  So what the cache does not
 * know is planned by a child (beside.c), which also looks into the plans on disk and writes
 * there.  The cache has its plan from then on, or why there is none.  Who asked is asked to
 * come again (-EAGAIN) until then, and so is who comes when all are at work: a file without
 * a plan has instructions of the machine (rdtsc) and lock functions that no follower has as
 * its leader.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/outside/patch/beside.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/patch/planner.h"
#include "engine/outside/plan/plan.h"
#include "engine/outside/plan/plan_parts.h"

/* What two looks at the same file have in common. */
static struct stat identity(const struct stat *st)
{
	struct stat same;

	_Static_assert(sizeof(same) <= BESIDE_ABOUT, "what a look is about");
	memset(&same, 0, sizeof(same));
	same.st_dev = st->st_dev;
	same.st_ino = st->st_ino;
	same.st_size = st->st_size;
	same.st_mtim = st->st_mtim;
	return same;
}

/* -EAGAIN: it is being looked at; or why it is not. */
static int look_beside(const struct beside *what, const struct near_file *f)
{
	struct stat about = identity(&f->st);
	int result;

	if (beside_under_way(what, &about, sizeof(about)))
		return -EAGAIN;
	result = beside_start(what, f->fd, f->far ? f->user : BESIDE_NEAR, &about, sizeof(about));
	return result && result != -EBUSY ? result : -EAGAIN;
}

/* --- calls ---------------------------------------------------------------------------- */

/* What a child leaves. */
struct calls {
	int error;
	struct plan plan;	/* and PLAN_SITES_MAX sites */
};

static int plan_waiting(int fd, struct plan **out)
{
	int again = near_read(fd), result = again < 0 ? again : plan_cached(again, out);

	if (again >= 0)
		close(again);
	return result;
}

static void calls_work(void *to, const void *about)
{
	struct calls *result = to;
	struct plan *p = NULL;

	(void)about;
	result->error = plan_waiting(3, &p);
	if (result->error)
		return;
	MUST(p->n <= PLAN_SITES_MAX);
	memcpy(&result->plan, p, sizeof(*p) + p->n * sizeof(p->sites[0]));
}

/* What it left of a file of this size; a plan that it cannot have made is none. */
static int calls_read(const struct calls *r, uint64_t size, struct plan **out)
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
	if (plan_fits(*out, size))
		return 0;
	plan_free(*out);
	*out = NULL;
	return -EIO;
}

static void calls_end(const void *result, const void *about, int error)
{
	const struct stat *st = about;
	struct plan *p = NULL;

	if (!error)
		error = calls_read(result, (uint64_t)st->st_size, &p);
	plan_learn(about, p, error);
	plan_free(p);
}

static const struct beside calls = {
	sizeof(struct calls) + PLAN_SITES_MAX * sizeof(struct plan_site), calls_work, calls_end,
};

int planner_plan(const struct near_file *f, struct plan **out)
{
	int result;

	MUST(f->fd >= 0);
	if (!beside_begun())
		return plan_waiting(f->fd, out);
	result = plan_known(&f->st, out);
	return result == -EAGAIN ? look_beside(&calls, f) : result;
}

/* --- hooks ---------------------------------------------------------------------------- */

struct hooks {
	int error;
	struct hook_plan plan;
};

static void hooks_find(struct hooks *result, enum hook_source source)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/fd/3", path, sizeof(path) - 1);
	int fd = near_read(3);

	result->error = fd < 0 ? fd : hook_plan_file(fd, source, &result->plan);
	path[n < 0 ? 0 : n] = 0;
	if (!result->error)
		hook_log(path, &result->plan);
}

static void dynamic_work(void *result, const void *about)
{
	(void)about;
	hooks_find(result, HOOKS_DYNAMIC);
}

static void static_work(void *result, const void *about)
{
	(void)about;
	hooks_find(result, HOOKS_STATIC);
}

/* What it found, or that it died of the file: there is nothing to hook then. */
static void hooks_end(const void *result, const void *about, int error)
{
	static struct hook_plan plan;
	const struct hooks *found = result;
	const struct stat *st = about;

	error = error ? error : found->error;
	if (!error)
		plan = found->plan;
	if (!error && !hook_plan_fits(&plan))
		error = -EIO;
	if (error) {
		say_log("hook", "a file of %ld bytes has no hooks: %s", (long)st->st_size,
			strerror(-error));
		plan.n = 0;
	}
	hook_learn(st, &plan);
}

static const struct beside hooks[] = {
	[HOOKS_DYNAMIC] = { sizeof(struct hooks), dynamic_work, hooks_end },
	[HOOKS_STATIC] = { sizeof(struct hooks), static_work, hooks_end },
};

bool planner_hooks(const struct near_file *f, enum hook_source source)
{
	MUST(source == HOOKS_DYNAMIC || source == HOOKS_STATIC);
	return beside_begun() && look_beside(&hooks[source], f) == -EAGAIN;
}
