/*
 * Who asks, and what.
 *
 * A slot names a thread, but any process of the version can write there, one that
 * gave up root as well: a request that said itself whom it is about would have the
 * monitor write into whatever process a worker likes.  So the slot only says where
 * to look.  The kernel says of that thread in which call it sleeps, with which
 * arguments, and where its code stands (/proc/PID/task/TID/syscall).  If it sleeps in
 * the inside's request_sleep, the last argument is the address of its request, in
 * memory that is its own.  Nothing else can be made to look like that: arguments and
 * program counter are the thread's, and what stands at the counter is code.
 *
 * The answer is written into the same request, and only then is the thread woken.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/outside/kernel/asker.h"
#include "engine/outside/session/descriptors.h"
#include "engine/outside/session/memory.h"
#include "engine/outside/session/reach.h"
#include "engine/outside/kernel/process.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/monitor/versions.h"

_Static_assert(AREA_THREADS <= BRIEF_SLOTS, "each slot has a word for its answer");

#define LOOKS		6	/* at a thread that has rung and is about to sleep: */
#define LOOKS_QUICK	2	/* of those without a pause */
#define LOOK_US		20	/* it may be that it has no other processor than ours */
#define WALK_LOOKS	16	/* what a walk through all processes counts as */

/* Where a thread sleeps in the kernel. */
struct sleeper {
	long nr;
	uint64_t arg[6], sp, pc;
};

/* The call's number, its arguments, stack pointer and place; "running" has none of them. */
static bool sleeper_parse(const char *text, struct sleeper *s)
{
	uint64_t word[8];
	char *end;

	s->nr = strtol(text, &end, 10);
	for (unsigned i = 0; i < 8; i++) {
		if (end == text || *end != ' ')
			return false;
		text = end;
		word[i] = strtoul(text, &end, 16);
	}
	memcpy(s->arg, word, sizeof(s->arg));
	s->sp = word[6];
	s->pc = word[7];
	return end != text;
}

static enum asker sleeper_read(pid_t pid, pid_t tid, struct sleeper *s)
{
	char path[64], text[256];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", pid, tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n < 0) {
		int why = errno;

		if (fd >= 0)
			close(fd);
		return (why == EPERM || why == EACCES) && thread_has_memory(pid, tid) ?
		       ASKER_CLOSED : ASKER_NONE;
	}
	close(fd);
	text[n] = 0;
	return sleeper_parse(text, s) ? ASKER_IS : ASKER_SOON;
}

/* What stands behind the thread's call, and the request that its last argument points to. */
static enum asker request_read(pid_t tid, const struct sleeper *s, struct request *r)
{
	char sign[REQUEST_SIGN_LEN];
	struct iovec here[2] = { { sign, sizeof(sign) }, { r, sizeof(*r) } };
	struct iovec there[2] = { { (void *)s->pc, sizeof(sign) },
				  { (void *)s->arg[5], sizeof(*r) } };
	ssize_t n = process_vm_readv(tid, here, 2, there, 2, 0);

	if (n < 0 && errno == EPERM)
		return ASKER_CLOSED;
	if (n != (ssize_t)(sizeof(sign) + sizeof(*r)))
		return ASKER_SOON;
	return memcmp(sign, REQUEST_SIGN, sizeof(sign)) ? ASKER_SOON : ASKER_IS;
}

/* What a request is about is mostly a path, and read with it. */
#define AHEAD		512

static struct ahead {
	pid_t tid;
	uint64_t at;
	long len;
	char bytes[AHEAD];
} ahead;	/* of the last request that was found */

/*
 * SO_PEERCRED names who made a pair, or who listened.  It stays so when a datagram socket is
 * connected elsewhere, to a service that would take us for its client: so no such one.
 */
static bool pair_is_of(int fd, pid_t pid)
{
	struct ucred peer;
	int domain = 0, type = 0;
	socklen_t size = sizeof(int), peer_size = sizeof(peer);

	return !getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) && domain == AF_UNIX &&
	       !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) && type == SOCK_SEQPACKET &&
	       !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_size) && peer.pid == pid;
}

static long pair_fetch(pid_t pid, int number)
{
	int fd = descriptor_fetch(pid, number);

	if (fd < 0 || pair_is_of(fd, pid))
		return fd;
	close(fd);
	return -EPERM;
}

/* The socket of a process that asks for what its twin has is fetched with its question. */
static struct {
	pid_t pid;		/* 0: none */
	int number, fd;
} brought;

void asker_ready(void)
{
	ahead.tid = 0;
}

struct looking {
	pid_t pid, tid;
	uint32_t slot;
	uint64_t key;
	struct request r;
	struct ahead ahead;
	int socket;		/* or -1 */
};

static void ahead_read(struct looking *l)
{
	uint64_t at = l->r.args[0], page = 4096 - at % 4096;
	struct iovec here = { l->ahead.bytes, page < AHEAD ? page : AHEAD };
	struct iovec there = { (void *)at, here.iov_len };

	l->ahead.tid = l->tid;
	l->ahead.at = at;
	l->ahead.len = process_vm_readv(l->tid, &here, 1, &there, 1, 0);
}

static bool is_question(const struct request *r, uint64_t key, uint32_t slot)
{
	return r->state == RS_ASKED && r->key == key && r->slot == slot;
}

static bool is_asked(const struct looking *l)
{
	return is_question(&l->r, l->key, l->slot);
}

/* What the thread asks, and where that lies. */
static enum asker question_read(pid_t pid, pid_t tid, struct request *r)
{
	struct sleeper s;
	enum asker is = sleeper_read(pid, tid, &s);

	if (is == ASKER_IS)
		is = request_read(tid, &s, r);
	r->pid = pid;
	r->tid = tid;
	r->at = is == ASKER_IS ? s.arg[5] : 0;
	return is;
}

static long look_do(void *room)
{
	struct looking *l = room;
	enum asker is = question_read(l->pid, l->tid, &l->r);

	l->ahead.tid = 0;
	if (is == ASKER_IS && l->r.kind == REQ_EXEC)
		ahead_read(l);
	l->socket = -1;
	if (is == ASKER_IS && l->r.kind == REQ_TAKE && is_asked(l))
		l->socket = (int)pair_fetch(l->pid, (int)l->r.args[0]);
	return is;
}

static void look_late(void *room, long result)
{
	const struct looking *l = room;

	if (result == ASKER_IS && l->socket >= 0)
		descriptors_close(l->pid, &l->socket, 1);
}

static void bring(pid_t pid, int number, int fd)
{
	if (brought.pid)
		descriptors_close(brought.pid, &brought.fd, 1);
	brought.pid = 0;
	if (fd < 0)
		return;
	brought.pid = pid;
	brought.number = number;
	brought.fd = fd;
}

/* Who is asked again does it again, so nothing is lost where it waits. */
static enum asker look(const struct version *v, uint32_t slot, pid_t pid, pid_t tid,
		       struct request *r)
{
	struct looking *l = tid > 0 && pid > 0 ? reach_room(pid, sizeof(*l)) : NULL;
	long is;

	if (!l)
		return tid > 0 && pid > 0 ? ASKER_MIRED : ASKER_NONE;
	l->pid = pid;
	l->tid = tid;
	l->slot = slot;
	l->key = v->key;
	is = reach_try(look_do, look_late);
	if (is != ASKER_IS)
		return is < 0 ? ASKER_MIRED : (enum asker)is;
	*r = l->r;
	ahead.tid = 0;
	if (l->ahead.tid)
		ahead = l->ahead;
	is = is_asked(l) ? ASKER_IS : ASKER_NONE;
	if (l->socket >= 0)
		bring(pid, (int)r->args[0], l->socket);
	return (enum asker)is;
}

/* --- in another pid namespace: the slot's numbers are none of ours -------------------- */

static bool is_elsewhere(pid_t pid)
{
	struct stat ours, theirs;
	char path[48];

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", pid);
	return !stat("/proc/self/ns/pid", &ours) && !stat(path, &theirs) &&
	       ours.st_ino != theirs.st_ino;
}

/* What it forks will be; of a namespace that has nobody yet the kernel says nothing. */
static bool forks_elsewhere(pid_t pid)
{
	struct stat ours, theirs;
	char path[48];

	snprintf(path, sizeof(path), "/proc/%d/ns/pid_for_children", pid);
	if (stat(path, &theirs))
		return errno == ENOENT && !process_over(pid);
	return !stat("/proc/self/ns/pid", &ours) && ours.st_ino != theirs.st_ino;
}

bool server_elsewhere(const struct version *v)
{
	static struct { uint64_t began; pid_t pid; bool is; } known[VERSIONS];

	MUST(v->index < VERSIONS);
	if (known[v->index].pid != v->server || known[v->index].began != v->began) {
		known[v->index].pid = v->server;
		known[v->index].began = v->began;
		known[v->index].is = is_elsewhere(v->server);
	}
	return known[v->index].is;
}

bool version_elsewhere(const struct version *v)
{
	const struct dirent *d;
	bool found = server_elsewhere(v);
	DIR *proc = v->monitor->pids_apart && !found ? opendir("/proc") : NULL;

	while (!found && proc && (d = readdir(proc))) {
		pid_t pid = (pid_t)strtol(d->d_name, NULL, 10);

		found = pid > 0 && (is_elsewhere(pid) || forks_elsewhere(pid)) &&
			version_owns(v, pid, pid);
	}
	if (proc)
		closedir(proc);
	return found;
}

static enum asker threads_look(const struct version *v, uint32_t slot, pid_t pid,
			       struct request *r)
{
	enum asker is = ASKER_NONE, one;
	const struct dirent *d;
	char path[48];
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	tasks = opendir(path);
	while (is != ASKER_IS && tasks && (d = readdir(tasks))) {
		one = look(v, slot, pid, (pid_t)strtol(d->d_name, NULL, 10), r);
		is = one == ASKER_IS || one == ASKER_SOON ? one : is;
	}
	if (tasks)
		closedir(tasks);
	return is;
}

static enum asker elsewhere_look(const struct version *v, uint32_t slot, struct request *r)
{
	enum asker is = ASKER_NONE, one;
	const struct dirent *d;
	DIR *proc = opendir("/proc");

	while (is != ASKER_IS && proc && (d = readdir(proc))) {
		pid_t pid = (pid_t)strtol(d->d_name, NULL, 10);

		if (pid <= 0 || !is_elsewhere(pid) || !version_owns(v, pid, pid))
			continue;
		one = threads_look(v, slot, pid, r);
		is = one == ASKER_NONE ? is : one;
	}
	if (proc)
		closedir(proc);
	return is;
}

static uint64_t holder_of(const struct version *v, uint32_t slot)
{
	MUST(slot < AREA_THREADS);
	return __atomic_load_n(&v->area->slot[slot].holder, __ATOMIC_RELAXED);
}

/*
 * Where the first thread of a version's first process was found to ask: it does so in the same
 * place as long as its program runs.  What stands there is its own, whether it sleeps or not.
 */
static struct { pid_t pid; uint64_t at; } heads[VERSIONS];

static void head_note(const struct version *v, const struct request *r)
{
	if (r->pid != r->tid || r->pid != v->server)
		return;
	__atomic_store_n(&heads[v->index].pid, r->pid, __ATOMIC_RELAXED);
	__atomic_store_n(&heads[v->index].at, r->at, __ATOMIC_RELAXED);
}

/* The kernel says that the thread is the process' first. */
static bool head_asks(const struct version *v, uint32_t slot, struct request *r)
{
	uint64_t at = __atomic_load_n(&heads[v->index].at, __ATOMIC_RELAXED);
	struct iovec here = { r, sizeof(*r) }, there = { (void *)at, sizeof(*r) };
	pid_t pid = r->pid;

	MUST(v->index < VERSIONS);
	if (pid != __atomic_load_n(&heads[v->index].pid, __ATOMIC_RELAXED) ||
	    syscall(SYS_tgkill, pid, pid, 0) < 0 ||
	    process_vm_readv(pid, &here, 1, &there, 1, 0) != (ssize_t)sizeof(*r))
		return false;
	r->pid = r->tid = pid;
	r->at = at;
	return is_question(r, v->key, slot);
}

enum asker asker_look(const struct version *v, uint32_t slot, struct request *r)
{
	uint64_t holder = holder_of(v, slot);
	pid_t tid = (pid_t)(uint32_t)holder, pid = (pid_t)(holder >> 32);
	enum asker is;

	r->pid = pid;
	if (pid == tid && head_asks(v, slot, r))
		return ASKER_IS;
	is = question_read(pid, tid, r);
	return is == ASKER_IS && !is_question(r, v->key, slot) ? ASKER_NONE : is;
}

static bool spend(unsigned *looks, unsigned n)
{
	MUST(n);		/* else it never has an end */
	bool has = *looks >= n;

	*looks -= has ? n : *looks;
	return has;
}

static bool asks(const struct slot *s)
{
	return __atomic_load_n(&s->asked, __ATOMIC_RELAXED) == RS_ASKED;
}

enum asker asker_find(const struct version *v, uint32_t slot, struct request *r,
		      unsigned *looks)
{
	struct slot *s = &v->area->slot[slot];
	uint64_t holder = holder_of(v, slot);
	pid_t tid = (pid_t)(uint32_t)holder, pid = (pid_t)(holder >> 32);
	enum asker is = look(v, slot, pid, tid, r), elsewhere;

	MUST(slot < AREA_THREADS);
	for (unsigned i = 0; is == ASKER_SOON && asks(s) && i < LOOKS && spend(looks, 1); i++) {
		if (i < LOOKS_QUICK)
			sched_yield();
		else
			usleep(LOOK_US);
		is = look(v, slot, pid, tid, r);
	}
	if (is == ASKER_IS)
		head_note(v, r);
	if (is == ASKER_IS || is == ASKER_MIRED)
		return is;
	/* It has gone on, perhaps into an execve, where it has no area for a while. */
	if (!asks(s))
		return ASKER_NONE;
	if (__atomic_load_n(&s->holder, __ATOMIC_RELAXED) != holder)
		return ASKER_SOON;	/* another has the slot by now */
	if (!spend(looks, 1))
		return ASKER_SOON;
	if (version_owns(v, pid, tid))
		return is;
	if (!spend(looks, WALK_LOOKS))
		return ASKER_SOON;
	elsewhere = elsewhere_look(v, slot, r);
	if (elsewhere != ASKER_NONE || is == ASKER_CLOSED)
		return elsewhere != ASKER_NONE ? elsewhere : is;
	/* Who asked there has been killed: it is looked for once. */
	s->asked = RS_IDLE;
	return ASKER_NONE;
}

static bool is_same(const struct request *now, const struct request *r, uint64_t key)
{
	return now->state == RS_ASKED && now->key == key && now->slot == r->slot &&
	       now->serial == r->serial;
}

/* Its process was known when it asked: what stands there now says whether it still does. */
bool asker_waits(const struct version *v, const struct request *r)
{
	struct request now;

	MUST(r->tid > 0 && r->slot < AREA_THREADS);	/* asker_find has given it */
	return memory_peek(r->tid, r->at, &now, sizeof(now)) == (long)sizeof(now) &&
	       is_same(&now, r, v->key);
}

struct answering {
	struct request r;
	int64_t reply;
	uint32_t *answer;
	bool looks;		/* it may not wait any more */
	uint64_t key;
};

static bool still_waits(const struct answering *a)
{
	struct request now;
	struct iovec here = { &now, sizeof(now) }, there = { (void *)a->r.at, sizeof(now) };

	return process_vm_readv(a->r.tid, &here, 1, &there, 1, 0) == (ssize_t)sizeof(now) &&
	       is_same(&now, &a->r, a->key);
}

static long answer_do(void *room)
{
	struct answering *a = room;
	uint32_t state = RS_ANSWERED;
	struct iovec here[2] = { { &a->reply, sizeof(a->reply) }, { &state, sizeof(state) } };
	struct iovec there[2] = {
		{ (void *)(a->r.at + offsetof(struct request, reply)), sizeof(a->reply) },
		{ (void *)(a->r.at + offsetof(struct request, state)), sizeof(state) },
	};

	if (a->looks && !still_waits(a))
		return 0;
	process_vm_writev(a->r.tid, here, 2, there, 2, 0);
	__atomic_fetch_and(a->answer, ~ANSWER_NONE, __ATOMIC_RELAXED);
	/* The thread reads its request after it has seen the word. */
	PUBLISH_BY(brief_answer, fetch_add, a->answer, ANSWER_ONE);
	syscall(SYS_futex, a->answer, FUTEX_WAKE, 1, NULL, NULL, 0);
	return 0;
}

/* Briefs stay as long as the session, and nobody waits for who does not take its answer. */
static void answer_post(struct version *v, const struct request *r, int64_t reply, bool looks)
{
	struct answering *a = reach_room(r->pid, sizeof(*a));

	MUST(r->slot < BRIEF_SLOTS && r->tid > 0);
	if (!a)
		return;
	*a = (struct answering){ *r, reply, &v->brief->answer[r->slot], looks, v->key };
	reach_post(answer_do, NULL);
}

void asker_answer(struct version *v, const struct request *r, int64_t reply)
{
	answer_post(v, r, reply, false);
}

void asker_answer_late(struct version *v, const struct request *r, int64_t reply)
{
	answer_post(v, r, reply, true);
}

int asker_text(const struct request *r, uint64_t at, char *to, size_t size)
{
	size_t page = 4096 - at % 4096, len = size - 1 < page ? size - 1 : page;
	long n, more;

	MUST(size > AHEAD);
	if (ahead.tid == r->tid && ahead.at == at && ahead.len > 0 &&
	    memchr(ahead.bytes, 0, (size_t)ahead.len)) {
		memcpy(to, ahead.bytes, (size_t)ahead.len);
		return 0;
	}
	/* Up to the end of the page first: the next one may not be there. */
	n = memory_peek(r->tid, at, to, len);
	if (n < 0)
		return (int)n;
	to[n] = 0;
	if (strlen(to) < (size_t)n || len == size - 1)
		return 0;
	more = memory_peek(r->tid, at + (uint64_t)n, to + n, size - 1 - (size_t)n);
	if (more == -ETIME)
		return -ETIME;
	to[more > 0 ? n + more : n] = 0;
	return 0;
}

int asker_give(const struct request *r, uint64_t to, const void *what, size_t len)
{
	MUST(r->tid > 0);
	return memory_poke(r->tid, to, what, len);
}

void asker_refuse(struct version *v, uint32_t slot)
{
	uint32_t *word = &v->brief->answer[slot];

	MUST(slot < AREA_THREADS);
	v->area->slot[slot].asked = RS_IDLE;
	PUBLISH(brief_answer, word, (*word + ANSWER_ONE) | ANSWER_NONE);
	syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

struct named {
	pid_t pid;
	int number;
};

static long socket_fetch(void *room)
{
	const struct named *its = room;

	return pair_fetch(its->pid, its->number);
}

static void socket_late(void *room, long result)
{
	int fd = (int)result;

	if (fd >= 0)
		descriptors_close(((const struct named *)room)->pid, &fd, 1);
}

int asker_socket(pid_t pid, int number)
{
	struct named *its;

	MUST(pid > 0);
	if (brought.pid == pid && brought.number == number) {
		brought.pid = 0;
		return brought.fd;
	}
	its = reach_room(pid, sizeof(*its));
	if (!its)
		return -ETIME;
	*its = (struct named){ pid, number };
	return (int)reach_do(socket_fetch, socket_late);
}
