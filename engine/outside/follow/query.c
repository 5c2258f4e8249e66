/*
 * A follower's own query on a descriptor: it holds none, so it is asked of the leader's.  We
 * ask, and give the follower the answer, never the descriptor: with that it could act.
 *
 * Nothing here may wait: of what has a file system, which may be slow, or served by the very
 * leader, only what the kernel knows without asking that.  What else there is to ask is made
 * by the row: the descriptor is exchanged, and memory that the call writes.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "engine/abi/table.h"
#include "engine/core/must.h"
#include "engine/core/walk.h"
#include "engine/outside/follow/query.h"
#include "engine/outside/kernel/asker.h"
#include "engine/outside/kernel/rights.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/monitor/streams.h"
#include "engine/outside/monitor/versions.h"
#include "engine/outside/session/descriptors.h"
#include "engine/outside/session/reach.h"

struct query {
	const struct call_desc *desc;
	const uint64_t *args;	/* the follower's: addresses in them are its own */
	pid_t twin;
	int fd;			/* the leader's, here */
	struct query_answer *answer;
};

#define ANSWER_SIZE sizeof(((struct query_answer *)0)->bytes)

/* --- the descriptor ------------------------------------------------------------------- */

/* The process whose lane the thread reads. */
static pid_t twin_of(struct monitor *m, const struct version *v, uint64_t lane)
{
	uint32_t source;
	pid_t pid;

	if (!lane_is(m, lane))
		return 0;
	source = cursor_at(m, v->index, (uint32_t)lane)->source;
	if (source >= m->versions)
		return 0;
	pid = lane_at(m, source, (uint32_t)lane)->pid;
	return pid > 0 && version_owns(&m->version[source], pid, pid) ? pid : 0;
}

/* --- what has a file system ----------------------------------------------------------- */

static struct stat stat_of(const struct statx *x)
{
	return (struct stat){
		.st_dev = makedev(x->stx_dev_major, x->stx_dev_minor),
		.st_ino = x->stx_ino,
		.st_nlink = x->stx_nlink,
		.st_mode = x->stx_mode,
		.st_uid = x->stx_uid,
		.st_gid = x->stx_gid,
		.st_rdev = makedev(x->stx_rdev_major, x->stx_rdev_minor),
		.st_size = (off_t)x->stx_size,
		.st_blksize = x->stx_blksize,
		.st_blocks = (blkcnt_t)x->stx_blocks,
		.st_atim = { x->stx_atime.tv_sec, x->stx_atime.tv_nsec },
		.st_mtim = { x->stx_mtime.tv_sec, x->stx_mtime.tv_nsec },
		.st_ctim = { x->stx_ctime.tv_sec, x->stx_ctime.tv_nsec },
	};
}

_Static_assert(sizeof(struct stat) == 144, "the kernel's");

static int64_t stat_answer(const struct query *q, const struct statx *x)
{
	struct stat st = stat_of(x);

	_Static_assert(sizeof(*x) <= ANSWER_SIZE && sizeof(st) <= ANSWER_SIZE, "they fit");

	if (q->desc->nr == SYS_statx)
		memcpy(q->answer->bytes, x, sizeof(*x));
	else
		memcpy(q->answer->bytes, &st, sizeof(st));
	return 0;
}

/* --- everything else ------------------------------------------------------------------ */

/* A flag of the number, not of what it leads to: the kernel would tell that of ours. */
static int64_t close_on_exec(const struct query *q)
{
	char path[64], text[256];
	const char *at;
	ssize_t n;
	int info;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", q->twin, (int)q->args[0]);
	info = open(path, O_RDONLY | O_CLOEXEC);
	n = info < 0 ? -1 : read(info, text, sizeof(text) - 1);
	if (info >= 0)
		close(info);
	text[n < 0 ? 0 : n] = 0;
	at = strstr(text, "flags:\t");
	if (!at)
		return -EBADF;
	return strtoul(at + 7, NULL, 8) & O_CLOEXEC ? FD_CLOEXEC : 0;
}

/* Bytes of memory that the call may write there; SIZE_MAX: it cannot be asked from here. */
static size_t room_of(const struct query *q, unsigned i, uint32_t room)
{
	const struct arg_desc *a = &q->desc->args[i];
	struct walk w = { .desc = q->desc, .args = q->args, .result = INT64_MAX, .room = room };
	uint64_t n;

	if (a->kind < KIND_VALUES || !q->args[i])
		return 0;
	if (a->kind != KIND_MEM || a->dir == DIR_IN || a->len_rule == LEN_RULE_SELF)
		return SIZE_MAX;
	n = step_length(&w, i);
	return n <= ANSWER_SIZE ? n : a->len_rule == LEN_RULE_AT ? ANSWER_SIZE : SIZE_MAX;
}

/* One argument may be written, and one more say how much there is. */
static int64_t by_row(const struct query *q, uint32_t room)
{
	uint64_t args[CALL_ARGS] = { (uint64_t)q->fd }, answer[ANSWER_SIZE / 8] = { 0 };
	unsigned outs = 0;
	long result;

	MUST(q->fd >= 0 && q->desc->class == CLASS_QUERY);	/* it changes nothing */

	room = room < ANSWER_SIZE ? room : ANSWER_SIZE;
	for (unsigned i = 1; i < q->desc->nargs; i++) {
		bool says = q->desc->args[i].dir == DIR_IO;
		size_t n = room_of(q, i, room);

		args[i] = n && says ? (uint64_t)&room : n ? (uint64_t)answer : q->args[i];
		outs += n && !says;
		if (n == SIZE_MAX || outs > 1 || (n && says && n != sizeof(room)))
			return -ENOSYS;
	}
	result = syscall(q->desc->nr, args[0], args[1], args[2], args[3], args[4], args[5]);
	if (result < 0)
		return -errno;
	memcpy(q->answer->bytes, answer, sizeof(answer));
	q->answer->room = room;
	return result;
}

static bool is_named(const struct query *q, const char *name)
{
	return !strcmp(q->desc->name, name);
}

/* A lock that the leader itself has would be another's to us. */
static bool is_ours_to_ask(const struct query *q)
{
	return q->desc->class == CLASS_QUERY && !is_named(q, "F_GETLK") &&
	       !is_named(q, "F_OFD_GETLK") && q->desc->nr != SYS_kcmp;
}

static int64_t ask(const struct query *q, uint32_t room)
{
	struct statx x = { 0 };

	if (is_named(q, "F_GETFD"))
		return close_on_exec(q);
	if (q->desc->nr == SYS_fcntl)
		return by_row(q, room);
	if (statx(q->fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS | STATX_BTIME,
		  &x))
		return -errno;
	if (q->desc->nr == SYS_newfstatat || q->desc->nr == SYS_statx)
		return stat_answer(q, &x);
	if (S_ISREG(x.stx_mode) || S_ISDIR(x.stx_mode) || S_ISBLK(x.stx_mode))
		return -ENOSYS;
	return by_row(q, room);
}

/* In a thread of its own: to have the descriptor, and to let it go, may wait. */
struct asking {
	struct query q;
	struct request r;
	struct query_answer answer;
};

static long asking_do(void *room)
{
	struct asking *a = room;
	long result;

	a->q.args = a->r.call + 1;
	a->q.answer = &a->answer;
	a->q.fd = descriptor_fetch(a->q.twin, (int)a->q.args[0]);
	if (a->q.fd < 0)
		return a->q.fd == -EBADF ? -EBADF : -ENOSYS;
	result = ask(&a->q, (uint32_t)a->r.call[7]);
	close(a->q.fd);
	return result;
}

static int64_t asked(const struct query *q, const struct request *r, struct query_answer *answer)
{
	struct asking *a = reach_room(q->twin, sizeof(*a));
	int64_t result;

	if (!a)
		return -ENOSYS;
	*a = (struct asking){ *q, *r, { .room = 0 } };
	result = reach_do(asking_do, NULL);
	if (result == -ETIME)
		return -ENOSYS;
	*answer = a->answer;
	return result;
}

/* The result of the call in r->call, or -ENOSYS: the follower is to see for itself. */
int64_t query_serve(struct version *v, const struct request *r)
{
	struct query_answer answer = { .room = 0 };
	struct query q = { .desc = call_find_variant((long)r->call[0], r->call + 1),
			   .args = r->call + 1, .twin = twin_of(v->monitor, v, r->args[0]) };
	int64_t result;

	if (!q.desc || !q.twin || !rights_cover(r->pid, q.twin) || !is_ours_to_ask(&q))
		return -ENOSYS;
	result = asked(&q, r, &answer);
	if (result == -EBADF || result == -ENOSYS)
		return result;
	return asker_give(r, r->args[1], &answer, sizeof(answer)) ? -ENOSYS : result;
}
