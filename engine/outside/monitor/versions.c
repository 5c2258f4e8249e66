/*
 * The versions of a session: their areas, their doorbells, and which processes
 * are theirs.
 *
 * What a version's processes write into its area is believed as little as can
 * be: a process is a version's when it has that version's area mapped, and only
 * such a one is ever sent a signal because of what a slot says.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/outside/late/rows.h"
#include "engine/outside/kernel/cgroup.h"
#include "engine/outside/kernel/maps.h"
#include "engine/outside/kernel/process.h"
#include "engine/outside/kernel/shared.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/versions.h"
#include "engine/outside/rewind/rewind.h"
#include "engine/outside/rules/rules_at_work.h"
#include "engine/outside/rules/rules_load.h"
#include "engine/outside/start/exec.h"
#include "engine/outside/takeover/take.h"

#define CLOSED_MS	500	/* so long it counts: it is looked at four times a second */
#define KILL_ROUNDS	8	/* a process may fork while we look */

/* --- areas -------------------------------------------------------------------- */

static void area_inherit(const struct version *v, bool inherit)
{
	madvise(v->area, sizeof(*v->area), inherit ? MADV_DOFORK : MADV_DONTFORK);
}

static int area_make(struct version *v)
{
	v->area = shared_make("mve-area", sizeof(*v->area), NULL, 0, &v->area_fd);
	if (!v->area)
		return -errno;
	v->area->magic = AREA_MAGIC;
	v->area->version = AREA_VERSION;
	area_inherit(v, false);
	return 0;
}

void versions_inherit(const struct monitor *m, bool inherit)
{
	for (unsigned i = 0; i < m->versions; i++)
		area_inherit(&m->version[i], inherit);
}

/* The same in each version: what it sends is compared. */
static void amends_take(struct amends *a, const struct run_options *o)
{
	MUST(o->reply_size <= REPLY_MAX);
	a->wanted = o->rollback;
	a->refuse = o->refuse_known;
	a->brings = o->brings;
	a->size = o->reply_size;
	if (o->reply)
		memcpy(a->reply, o->reply, o->reply_size);
}

static int brief_make(struct version *v)
{
	v->brief = shared_make("mve-brief", sizeof(*v->brief), NULL, F_SEAL_FUTURE_WRITE,
			       &v->brief_fd);
	if (!v->brief)
		return -errno;
	v->brief->magic = BRIEF_MAGIC;
	v->brief->version = BRIEF_VERSION;
	amends_take(&v->brief->amends, v->monitor->options);
	return getrandom(&v->key, sizeof(v->key), 0) == sizeof(v->key) ? 0 : -EIO;
}

/* Holds the robust futex that tells the inside that we live. */
static int alive_hold(struct brief *b)
{
	pthread_mutexattr_t attr;
	pthread_mutex_t *mutex = (pthread_mutex_t *)&b->alive;
	int result;

	_Static_assert(sizeof(pthread_mutex_t) <= sizeof(b->alive), "a mutex fits");
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(mutex, &attr);
	result = -pthread_mutex_lock(mutex);
	/* As if somebody waited: the kernel wakes one who does when we die (lanes/sleep.c). */
	if (!result)
		__atomic_fetch_or(&b->alive.word, FUTEX_WAITERS, __ATOMIC_RELAXED);
	return result;
}

/* What the kernel goes through when we die, the one that was held last first. */
static struct robust_list *alive_node(const struct brief *b)
{
	pthread_mutex_t *mutex = (pthread_mutex_t *)&b->alive;

	return (struct robust_list *)&mutex->__data.__list.__next;
}

/*
 * No follower finds that we have died before the leader does.  Until the last step the list is
 * one that goes round, with all of them in it: the kernel leaves that after some rounds.
 */
static void alive_first(const struct brief *b)
{
	struct robust_list *node = alive_node(b), *last, *first, *rest = node->next;
	struct robust_list_head *head;
	size_t size;

	if (syscall(SYS_get_robust_list, 0, &head, &size) < 0 || head->list.next == node)
		return;
	first = last = head->list.next;
	while (last->next != node) {
		MUST(last->next != &head->list);
		last = last->next;
	}
	/* In this order, for whoever reads it when this thread is no more. */
	*(struct robust_list *volatile *)&node->next = first;
	*(struct robust_list *volatile *)&head->list.next = node;
	*(struct robust_list *volatile *)&last->next = rest;
}

int versions_alive_hold(struct monitor *m, unsigned from)
{
	int result = 0;

	for (unsigned i = from; i < m->versions && !result; i++)
		result = alive_hold(m->version[i].brief);
	if (from && !result)
		alive_first(leading(m)->brief);
	return result;
}

static void maps_take(struct brief *b, const struct follower_options *o)
{
	b->strict = o->strict;
	MUST(o->maps <= PATH_MAPS);
	for (b->maps = 0; b->maps < o->maps; b->maps++) {
		struct path_map *row = &b->map[b->maps];

		snprintf(row->from, sizeof(row->from), "%s", o->map_from[b->maps]);
		snprintf(row->to, sizeof(row->to), "%s", o->map_to[b->maps]);
	}
}

void version_ask(struct version *v, const struct follower_options *o)
{
	maps_take(v->brief, o);
	if (o->rules_bank)
		rules_put(v->brief, o->rules_bank);
}

_Static_assert(BRIEF_SLOTS == AREA_THREADS, "an answer for each slot");
_Static_assert(RELEASES == VERSIONS, "a release for each row");
_Static_assert(SPARES_MOST == ROW_START - 2, "a row for the leader, and one for the next");
_Static_assert(sizeof(struct rules_bank) == RULES_BANK, "banks lie side by side");

int version_make(struct monitor *m, const struct follower_options *o)
{
	struct version *v = &m->version[m->versions];
	int result;

	MUST(m->versions < VERSIONS);
	v->monitor = m;
	v->index = m->versions;
	v->options = o;
	v->partly = m->options->sampling.how != SAMPLE_ALL;
	v->tell = -1;
	v->image = calloc(AREA_IMAGES, sizeof(*v->image));
	MUST(v->image);
	result = area_make(v);
	if (!result)
		result = brief_make(v);
	if (result)
		return result;
	m->versions++;
	if (o) {
		snprintf(v->name, sizeof(v->name), "%s", o->name);
		version_ask(v, o);
		rewind_begin(v);
	} else {
		strcpy(v->name, "v0");
	}
	return 0;
}

/* A row and an area for each; argv and path are there already. */
int versions_make(struct monitor *m)
{
	int result = version_make(m, NULL);

	for (unsigned i = 0; !result && i < m->options->followers; i++)
		result = version_make(m, &m->options->follower[i]);
	if (!result && options_company(m->options) && !m->options->replay)
		result = rows_make(m);
	if (!result)
		rules_releases(m);
	return result ? result : versions_alive_hold(m, 0);
}

/* --- doorbells ------------------------------------------------------------------ */

static void *bell_wait(void *arg)
{
	const struct version *v = arg;
	/* Another version may come to have the row meanwhile. */
	const struct monitor *m = v->monitor;
	uint32_t *bell = &v->area->doorbell, heard = 0;

	for (;;) {
		uint32_t now = CONSUME(area_doorbell, bell);
		bool dies = now != heard && ahead_dies(v);
		uint64_t one = 1;

		if (now != heard && write(m->bell_fd, &one, sizeof(one)) < 0)
			return NULL;
		heard = now;
		if (dies)
			ahead_foresee(v);
		syscall(SYS_futex, bell, FUTEX_WAIT, now, NULL, NULL, 0);
	}
}

int version_bell_start(struct version *v)
{
	return -pthread_create(&v->bell_thread, NULL, bell_wait, v);
}

unsigned versions_heard(const struct monitor *m, uint32_t *heard)
{
	for (unsigned i = 0; i < m->versions; i++)
		heard[i] = CONSUME(area_doorbell, &m->version[i].area->doorbell);
	return m->versions;
}

bool versions_ring(const struct monitor *m, const uint32_t *heard, unsigned n, uint64_t us)
{
	struct futex_waitv bell[VERSIONS] = { 0 };
	const struct timespec until = clock_after(us);

	MUST(n <= VERSIONS);
	for (unsigned i = 0; i < n; i++)
		bell[i] = (struct futex_waitv){ .val = heard[i], .flags = FUTEX_32,
			.uaddr = (uintptr_t)&m->version[i].area->doorbell };
	return syscall(SYS_futex_waitv, bell, n, 0, &until, CLOCK_MONOTONIC) >= 0 ||
	       errno != ENOSYS;
}

/* --- whose ------------------------------------------------------------------------ */

struct version *version_named(struct monitor *m, const char *name)
{
	for (unsigned i = 0; i < m->versions; i++)
		if (!strcmp(m->version[i].name, name))
			return &m->version[i];
	return NULL;
}

struct version *version_of_child(struct monitor *m, pid_t pid)
{
	for (unsigned i = 0; i < m->versions; i++)
		if (m->version[i].server == pid)
			return &m->version[i];
	return NULL;
}

uint32_t version_slots(const struct version *v)
{
	/* The slots below have been claimed. */
	uint32_t high = CONSUME(area_slots_high, &v->area->slots_high);

	return high < AREA_THREADS ? high : AREA_THREADS;
}

/* Of its processes the slots name one that is this, or has this parent. */
static bool slots_name(const struct version *v, pid_t pid)
{
	for (uint32_t i = 0; i < version_slots(v); i++)
		if (v->area->slot[i].owner && v->area->slot[i].pid == pid)
			return true;
	return false;
}

static pid_t birth_read(const struct version *v, unsigned i)
{
	MUST(i < BIRTHS);
	/* Who is born has a slot. */
	int32_t row = CONSUME(births, &v->area->births[i]);

	return row < 0 ? -row : row;
}

/* One that is being born has no slot yet. */
static bool births_name(const struct version *v, pid_t pid)
{
	for (unsigned i = 0; i < BIRTHS; i++)
		if (birth_read(v, i) == pid)
			return true;
	return false;
}

struct head {
	pid_t pid;		/* 0: none */
	uint64_t began;
	bool child;		/* of another process of the version */
	int handle;		/* a pidfd, by which one sees whether it lives; or -1 */
};

/* Better as the one that stands for all: not made by another of them; then the older. */
static bool is_before(const struct version *v, pid_t pid, uint64_t began, const struct head *than)
{
	bool child = slots_name(v, process_parent(pid));

	if (!than->pid || child != than->child)
		return !than->pid || !child;
	return began < than->began || (began == than->began && pid < than->pid);
}

/* Of each version, as it was found last. */
static struct head heads[VERSIONS];

/* One whose program is being replaced has no area for that long, and is seen through by us. */
static bool is_of(const struct version *v, pid_t pid)
{
	return version_owns(v, pid, pid) || exec_is_under_way(v, pid);
}

static struct head head_find(const struct version *v)
{
	struct head best = { 0 };
	pid_t last = 0;

	for (uint32_t i = 0; i < version_slots(v); i++) {
		pid_t pid = v->area->slot[i].owner ? v->area->slot[i].pid : 0;
		uint64_t began = pid > 0 && pid != last ? process_began(pid) : 0;

		last = pid;
		if (began && is_before(v, pid, began, &best) && is_of(v, pid))
			best = (struct head){ pid, began, slots_name(v, process_parent(pid)), -1 };
	}
	return best;
}

/* The handle stays the process's; that it is the one that is meant is seen behind it. */
static void head_take(struct head *h, struct head now)
{
	if (h->pid && h->handle >= 0)
		close(h->handle);
	*h = now;
	h->handle = h->pid ? (int)syscall(SYS_pidfd_open, h->pid, 0) : -1;
	if (h->handle < 0 || process_began(h->pid) == h->began)
		return;
	close(h->handle);
	*h = (struct head){ .handle = -1 };
}

static bool head_lives(const struct head *h)
{
	struct pollfd over = { .fd = h->handle, .events = POLLIN };

	if (!h->pid)
		return false;
	return h->handle >= 0 ? poll(&over, 1, 0) == 0 : process_began(h->pid) == h->began;
}

pid_t version_head(const struct version *v)
{
	struct head *h = &heads[v->index];
	bool first = !v->gone && v->server;

	MUST(v->index < VERSIONS && v == &v->monitor->version[v->index]);

	if (head_lives(h) && (!first || (h->pid == v->server && h->began == v->began)))
		return h->pid;
	if (first && process_began(v->server) == v->began)
		head_take(h, (struct head){ v->server, v->began, false, -1 });
	else if (!head_lives(h))
		head_take(h, head_find(v));
	return h->pid;
}

uint64_t version_head_began(const struct version *v)
{
	return version_head(v) ? heads[v->index].began : 0;
}

/* One that is born while we look has a slot by the time that it is no birth any more. */
bool version_alive(const struct version *v)
{
	return version_head(v) || version_births(v) || version_head(v);
}

bool version_closed(const struct version *v)
{
	pid_t head = version_head(v);

	return head && process_closed(head);
}

/* It changes that seldom, and what is found then to be closed after all is not taken from. */
static struct { pid_t head; uint64_t at_ms; bool is; } closed[VERSIONS];

void version_closed_note(const struct version *v)
{
	pid_t head = version_head(v);

	MUST(v->index < VERSIONS);
	closed[v->index].head = head;
	closed[v->index].is = head && process_closed(head);
	closed[v->index].at_ms = now_ms();
}

bool version_closed_lately(const struct version *v)
{
	pid_t head = version_head(v);

	if (!head || head != closed[v->index].head ||
	    now_ms() > closed[v->index].at_ms + CLOSED_MS)
		return version_closed(v);
	return closed[v->index].is;
}

bool version_births(const struct version *v)
{
	for (unsigned i = 0; i < BIRTHS; i++) {
		pid_t pid = birth_read(v, i);

		if (pid > 0 && version_owns(v, pid, pid))
			return true;
	}
	return false;
}

bool version_lives(const struct version *v)
{
	return v->state == VERSION_STARTING || v->state == VERSION_LEADS ||
	       v->state == VERSION_FOLLOWS;
}

bool version_judged(const struct version *v)
{
	bool any = false;

	for (unsigned i = 0; i < VERDICTS; i++)
		any |= i != VERDICT_MATCH && v->verdicts[i];
	return any;
}

/*
 * Where a process of each version was found to have its area: those that it has
 * forked have theirs there, too, and one look is a tenth of reading all maps.
 */
static uint64_t area_seen[VERSIONS];

static const struct map *area_in(const struct maps *maps, const struct stat *area)
{
	for (size_t i = 0; i < maps->n; i++)
		if (maps->map[i].shared && maps->map[i].inode == area->st_ino &&
		    maps->map[i].dev == area->st_dev)
			return &maps->map[i];
	return NULL;
}

/* 1: there it is; 0: it is not; or why that cannot be known. */
static int area_where_seen(const struct version *v, pid_t pid, const struct stat *area)
{
	uint64_t at = area_seen[v->index];
	struct maps maps = { 0 };
	int result = at ? maps_read_part(pid, at, at + 1, &maps) : 0;

	if (!result)
		result = area_in(&maps, area) != NULL;
	maps_free(&maps);
	return result;
}

/* When it began: its first process may be a copy of that (rewind/). */
static uint64_t oldest(const struct version *v)
{
	return v->rewind.oldest ? v->rewind.oldest : v->began;
}

/*
 * A process that is not dumpable shows its maps to root alone: it is the version's if a
 * slot says so.  Who can write there is of our user, and could do to a process of our
 * user by itself whatever we do because of it; that is not so where we are root.
 */
static bool closed_named(const struct version *v, pid_t pid)
{
	return (slots_name(v, pid) || births_name(v, pid)) && process_began(pid) >= oldest(v) &&
	       process_like_us(pid) && process_closed(pid);
}

static bool area_mapped(const struct version *v, pid_t pid)
{
	const struct map *map;
	struct maps maps;
	struct stat st;
	bool ours;
	int result;

	/* The monitor has all areas mapped: who names it in a slot would have it end itself. */
	if (pid == getpid() || fstat(v->area_fd, &st) < 0)
		return false;
	result = area_where_seen(v, pid, &st);
	if (result > 0 || result == -ETIME)
		return result > 0;
	result = maps_read(pid, &maps);
	if (result)
		return result == -EACCES && closed_named(v, pid);
	map = area_in(&maps, &st);
	ours = map;
	area_seen[v->index] = ours ? map->start : area_seen[v->index];
	maps_free(&maps);
	return ours;
}

/*
 * Whether the process is the version's, by the area that it has mapped: the pid
 * comes from memory that the program can write, or from another pid namespace.
 */
bool version_owns(const struct version *v, pid_t pid, pid_t tid)
{
	char task[64];

	snprintf(task, sizeof(task), "/proc/%d/task/%d", pid, tid);
	return access(task, F_OK) == 0 && area_mapped(v, pid);
}

/* --- its end ------------------------------------------------------------------------ */

/* By a handle that stays the process's, so that no other is hit. */
bool version_signal_one(const struct version *v, pid_t pid, int sig)
{
	int handle = (int)syscall(SYS_pidfd_open, pid, 0);
	bool ours = handle >= 0 && process_began(pid) >= oldest(v) && area_mapped(v, pid);

	if (ours)
		syscall(SYS_pidfd_send_signal, handle, sig, NULL, 0);
	if (handle >= 0)
		close(handle);
	return ours;
}

bool version_kill_one(const struct version *v, pid_t pid)
{
	return version_signal_one(v, pid, SIGKILL);
}

/* All processes of the machine that began since it did. */
static unsigned kill_found(const struct version *v)
{
	DIR *proc = opendir("/proc");
	const struct dirent *d;
	unsigned n = 0;

	while (proc && (d = readdir(proc))) {
		pid_t pid = (pid_t)strtol(d->d_name, NULL, 10);

		if (pid > 0 && pid != getpid() && process_began(pid) >= oldest(v))
			n += version_kill_one(v, pid);
	}
	if (proc)
		closedir(proc);
	return n;
}

/*
 * First what its slots name, which is quick, then what has its area mapped: a
 * broken version may have written anything into its slots.
 */
unsigned version_kill(struct version *v)
{
	unsigned n = 0, more;

	if (!v->began)
		return 0;
	MUST(v->server > 0);	/* -1 is everybody */
	if (!v->gone && process_began(v->server) == v->began)
		n += kill(v->server, SIGKILL) == 0;
	for (uint32_t i = 0; i < version_slots(v); i++) {
		const struct slot *s = &v->area->slot[i];

		if (s->owner && s->pid > 0 && s->pid != v->server)
			n += version_kill_one(v, s->pid);
	}
	for (int round = 0; round < KILL_ROUNDS; round++, n += more) {
		more = kill_found(v);
		if (!more)
			break;
		usleep(1000);
	}
	return n;
}

unsigned version_end(struct version *v)
{
	bool grouped = v->began && v->monitor->cgroup >= 0;
	unsigned n;

	if (v->empty)
		return 0;
	n = version_kill(v) + (grouped && cgroup_kill(v->monitor->cgroup, v->name));
	v->empty = grouped && v->gone && !n;
	return n;
}
