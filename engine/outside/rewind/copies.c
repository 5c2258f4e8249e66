/*
 * The processes of a version, and their copies, which are its image or its twin: all of them,
 * or none.  Who asks for a step is answered when all have asked for it: they stand until then.
 */
#include <dirent.h>
#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/outside/kernel/asker.h"
#include "engine/outside/kernel/process.h"
#include "engine/outside/kernel/rights.h"
#include "engine/outside/monitor/versions.h"
#include "engine/outside/rewind/rewind_parts.h"

static struct copy *find(struct copy *copy, unsigned copies, pid_t of)
{
	for (unsigned i = 0; i < copies; i++)
		if (copy[i].of == of)
			return &copy[i];
	return NULL;
}

struct copy *copy_of(struct rewind *rw, pid_t pid)
{
	return find(rw->wanted, rw->wanted_copies, pid);
}

static bool is_alive(pid_t pid, pid_t tid)
{
	char state = tid > 0 && pid > 0 ? thread_state(pid, tid) : 0;

	return state && state != 'Z' && state != 'X';
}

/* Those that there are now: how many, or a negative errno. */
static int processes_list(const struct version *v, struct copy *copy)
{
	unsigned n = 0;

	/* What ps and status name comes first. */
	if (!v->gone)
		copy[n++] = (struct copy){ .of = v->server };
	for (uint32_t i = 0; i < version_slots(v); i++) {
		const struct slot *s = &v->area->slot[i];
		/* Read once: the process that is asked about is the one that is taken. */
		pid_t pid = __atomic_load_n(&s->pid, __ATOMIC_RELAXED);
		pid_t tid = (pid_t)__atomic_load_n(&s->owner, __ATOMIC_RELAXED);

		if (!is_alive(pid, tid) || find(copy, n, pid))
			continue;
		if (s->unheld || !version_owns(v, pid, tid))
			return -EAGAIN;
		if (n == COPIES_MAX)
			return -E2BIG;
		copy[n++] = (struct copy){ .of = pid };
	}
	return version_births(v) || !n ? -EAGAIN : (int)n;
}

int copies_begin(struct version *v)
{
	struct copy *copy = v->rewind.wanted;
	int n = processes_list(v, copy);

	v->rewind.wanted_copies = n > 0 ? (unsigned)n : 0;
	for (unsigned i = 0; i < v->rewind.wanted_copies; i++) {
		copy[i].known = copy[i].of;
		copy[i].parent = process_parent(copy[i].of);
		copy[i].group = getpgid(copy[i].of);
	}
	return n > 0 ? 0 : n;
}

bool copies_all(struct version *v)
{
	struct copy now[COPIES_MAX];
	int n = processes_list(v, now);

	for (int i = 0; i < n; i++)
		if (!copy_of(&v->rewind, now[i].of))
			return false;
	return n > 0 && (unsigned)n == v->rewind.wanted_copies;
}

bool copies_wait(struct rewind *rw, struct copy *c, const struct request *r)
{
	c->request = *r;
	c->waits = true;
	for (unsigned i = 0; i < rw->wanted_copies; i++)
		if (!rw->wanted[i].waits)
			return false;
	return true;
}

bool copy_have(struct version *v, struct copy *c, pid_t pid)
{
	if (pid <= 0 || pid == v->server || copy_of(&v->rewind, pid) ||
	    !version_owns(v, pid, pid))
		return false;
	c->pid = pid;
	c->began = process_began(pid);
	return true;
}

void copies_answer(struct version *v, int64_t reply)
{
	struct rewind *rw = &v->rewind;

	MUST(rw->wanted_copies <= COPIES_MAX);
	for (unsigned i = 0; i < rw->wanted_copies; i++) {
		struct copy *c = &rw->wanted[i];

		if (c->waits)
			asker_answer_late(v, &c->request, reply);
		c->waits = false;
	}
}

/* --- what they have forbidden themselves ----------------------------------------------------- */

#define FILES_NEEDED	16
#define FILES_LIFTED	4096

static const struct lifted_limit {
	__rlimit_resource_t resource;
	rlim_t needs, more;
} lifted_limits[COPY_LIMITS] = {
	{ RLIMIT_NOFILE, FILES_NEEDED, FILES_LIFTED },
	{ RLIMIT_NPROC, 1, RLIM_INFINITY },
};

/* Beyond what a process may give itself. */
static bool may_lift(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };

	return !syscall(SYS_capget, &head, data) &&
	       data[0].effective & 1u << CAP_SYS_RESOURCE;
}

/* Root's children the kernel does not count. */
static bool is_roots(pid_t pid)
{
	struct rights_key key;

	return rights_key_read(pid, &key) && !key.uid[0];
}

/* The hard ones: prlimit tells them only to those with the same ids; this, everybody. */
static bool is_confined(pid_t pid)
{
	uint64_t files = UINT64_MAX, processes = UINT64_MAX;	/* also where it says "unlimited" */
	char path[64], line[256];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/limits", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		sscanf(line, "Max open files %*s %lu", &files);
		sscanf(line, "Max processes %*s %lu", &processes);
	}
	if (f)
		fclose(f);
	return files < FILES_NEEDED || (!processes && !is_roots(pid));
}

bool copies_confined(const struct rewind *rw)
{
	bool confined = false;

	for (unsigned i = 0; i < rw->wanted_copies; i++)
		confined |= is_confined(rw->wanted[i].of);
	return confined && !may_lift();
}

static void limit_lift(struct copy *c, int k)
{
	const struct lifted_limit *l = &lifted_limits[k];
	struct rlimit *was = &c->limit[k], more = { l->more, l->more };

	if (prlimit(c->of, l->resource, NULL, was) || was->rlim_cur >= l->needs)
		return;
	more.rlim_max = was->rlim_max < l->needs ? l->more : was->rlim_max;
	more.rlim_cur = more.rlim_max < l->more ? more.rlim_max : l->more;
	c->lifted[k] = !prlimit(c->of, l->resource, &more, NULL);
}

void copies_lift(struct rewind *rw)
{
	for (unsigned i = 0; i < rw->wanted_copies; i++)
		for (int k = 0; k < COPY_LIMITS; k++)
			limit_lift(&rw->wanted[i], k);
}

/* The process, or its copy, has what it had given itself. */
static void limits_settle(const struct copy *c, pid_t pid)
{
	for (int k = 0; k < COPY_LIMITS; k++)
		if (c->lifted[k] && pid)
			prlimit(pid, lifted_limits[k].resource, &c->limit[k], NULL);
}

void copies_settle(const struct rewind *rw)
{
	for (unsigned i = 0; i < rw->wanted_copies; i++)
		limits_settle(&rw->wanted[i], rw->wanted[i].of);
}

void copies_made_settle(const struct rewind *rw)
{
	for (unsigned i = 0; i < rw->wanted_copies; i++)
		limits_settle(&rw->wanted[i], rw->wanted[i].pid);
}

/* --- children that have ended -------------------------------------------------------------- */

/* While all of its processes stand nobody waits for them, and no other ends by itself. */
static struct { pid_t pid, parent; } ended[ENDED_MAX];
static unsigned ended_n;

static int ended_add(pid_t pid, pid_t parent)
{
	if (thread_state(pid, pid) != 'Z')
		return 0;
	if (ended_n == ENDED_MAX)
		return -EAGAIN;
	ended[ended_n].pid = pid;
	ended[ended_n++].parent = parent;
	return 0;
}

/* A thread's children: -ENOENT where the kernel does not say. */
static int ended_read(pid_t pid, const char *tid)
{
	char name[64];
	int child, result = 0;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%d/task/%.20s/children", pid, tid);
	f = fopen(name, "re");
	if (!f)
		return -errno;
	while (!result && fscanf(f, "%d", &child) == 1)
		result = ended_add(child, pid);
	fclose(f);
	return result;
}

static int ended_of(pid_t pid)
{
	const struct dirent *e;
	int result = 0;
	char name[64];
	DIR *tasks;

	snprintf(name, sizeof(name), "/proc/%d/task", pid);
	tasks = opendir(name);
	if (!tasks)
		return -errno;
	while (!result && (e = readdir(tasks)))
		if (e->d_name[0] != '.')
			result = ended_read(pid, e->d_name);
	closedir(tasks);
	return result;
}

int copies_ended(const struct version *v)
{
	int result = 0;

	ended_n = 0;
	for (unsigned i = 0; i < v->rewind.wanted_copies && !result; i++)
		result = ended_of(v->rewind.wanted[i].of);
	return result;
}

void copies_move_ended(struct version *v)
{
	struct images *words = &v->brief->images;

	MUST(words->moves <= COPIES_MAX && ended_n <= ENDED_MAX);
	for (unsigned i = 0; i < ended_n; i++) {
		words->move[words->moves].was = words->move[words->moves].is = ended[i].pid;
		words->move[words->moves].parent = ended[i].parent;
		words->move[words->moves++].group = 0;
	}
	ended_n = 0;
}

/* --- their ends ---------------------------------------------------------------------------- */

static void some_kill(struct copy *copy, unsigned copies)
{
	for (unsigned i = 0; i < copies; i++)
		if (copy[i].pid)
			process_signal(copy[i].pid, copy[i].began, SIGKILL);
}

void copies_drop(struct rewind *rw)
{
	some_kill(rw->wanted, rw->wanted_copies);
	rw->wanted_copies = 0;
}

void copies_take(struct rewind *rw, uint32_t image)
{
	MUST(image && rw->wanted_copies);
	memcpy(rw->copy, rw->wanted, sizeof(rw->copy));
	rw->copies = rw->wanted_copies;
	rw->image = image;
	rw->wanted_copies = 0;
}

void copies_kill(struct rewind *rw)
{
	some_kill(rw->copy, rw->copies);
	rw->copies = 0;
	rw->image = 0;
	rw->over = false;
}

bool copies_live(const struct rewind *rw)
{
	for (unsigned i = 0; i < rw->copies; i++)
		if (!rw->copy[i].pid || process_began(rw->copy[i].pid) != rw->copy[i].began)
			return false;
	return rw->copies;
}

bool copies_are(const struct rewind *rw, pid_t pid)
{
	for (unsigned i = 0; i < rw->copies; i++)
		if (rw->copy[i].pid == pid)
			return true;
	return false;
}

const struct copy *copy_kept(const struct rewind *rw, pid_t of)
{
	return find((struct copy *)rw->copy, rw->copies, of);
}

/* Whose group is that of these: its own first process', or of them the first that was there. */
static pid_t group_of(const struct rewind *rw, pid_t group)
{
	const struct copy *leads = NULL;

	for (unsigned i = 0; i < rw->copies && !leads; i++)
		leads = rw->copy[i].known == group ? &rw->copy[i] : NULL;
	for (unsigned i = 0; i < rw->copies && !leads; i++)
		leads = rw->copy[i].group == group ? &rw->copy[i] : NULL;
	return leads ? leads->pid : 0;
}

void copies_move(struct version *v)
{
	struct images *words = &v->brief->images;
	struct rewind *rw = &v->rewind;

	MUST(rw->copies && rw->copies <= COPIES_MAX);
	words->moves = rw->wanted_copies = rw->copies;
	for (unsigned i = 0; i < rw->copies; i++) {
		const struct copy *c = &rw->copy[i];

		words->move[i].was = c->known;
		words->move[i].is = c->pid;
		words->move[i].parent = c->parent;
		words->move[i].group = group_of(rw, c->group);
		rw->wanted[i] = (struct copy){ .of = c->pid, .known = c->known,
					       .parent = c->parent, .group = c->group };
	}
}
