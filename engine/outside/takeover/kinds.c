/*
 * The kinds of the old leader's state that the monitor looks up and sends: state.def has a
 * row for each, which names the functions here.  What is HANDED is looked at when its
 * descriptor is fetched (fetch.c); what is SENT is sent in the order of the table.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/core/ring.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/streams.h"
#include "engine/outside/monitor/versions.h"
#include "engine/outside/takeover/takeover.h"
#include "engine/outside/takeover/taking.h"
#include "engine/outside/takeover/untold.h"

/* --- messages --------------------------------------------------------------------------- */

/*
 * Its socket may be filled by itself, and be given any time to wait in (SO_SNDTIMEO) while we
 * send: it is we who wait, and the whole taking has so long.
 */
static int text_send(struct taking *k, const struct msghdr *m)
{
	while (sendmsg(k->socket, m, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
		struct pollfd room = { k->socket, POLLOUT, 0 };
		uint64_t begin = now_us(), waited;

		if (errno != EAGAIN || !k->wait_us)
			return -errno;
		poll(&room, 1, (int)(k->wait_us / 1000) + 1);
		waited = now_us() - begin;
		k->wait_us -= waited < k->wait_us ? waited : k->wait_us;
	}
	return 0;
}

int message_send(struct taking *k, const struct taken_message *message, size_t row_size,
		 const int *fd)
{
	char control[CMSG_SPACE(TAKEN_ROWS * sizeof(int))] = { 0 };
	struct iovec iov = { (void *)message, TAKEN_HEAD + message->n * row_size };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *c;

	MUST(message->n <= TAKEN_ROWS && iov.iov_len <= sizeof(*message));
	if (fd && message->n) {
		m.msg_control = control;
		m.msg_controllen = CMSG_SPACE(message->n * sizeof(int));
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(message->n * sizeof(int));
		memcpy(CMSG_DATA(c), fd, message->n * sizeof(int));
	}
	return text_send(k, &m);
}

/* --- pidfds --------------------------------------------------------------------------- */

/* The successor's process in the place of this one of the old leader's; or 0. */
static pid_t process_of_successor(struct monitor *m, pid_t pid)
{
	const struct version *v = m->move.from;

	for (unsigned hops = 0; v && hops < VERSIONS; hops++, v = taken_before(m, v))
		LANES_EACH(m, v->index, i) {
			const struct lane *l = lane_at(m, v->index, i);

			if (l->pid == pid && l->state == LANE_OPEN)
				return cursor_at(m, m->move.to->index, i)->pid;
		}
	return 0;
}

/* A pidfd of a process that goes with the old leader: another one is to be in its place. */
static void pidfd_look(struct monitor *m, struct taking *k, const struct taken_descriptor *row,
		       const char *info)
{
	const char *pid = strstr(info, "\nPid:\t"), *flags = strstr(info, "flags:\t");
	pid_t was = pid ? (pid_t)strtol(pid + 6, NULL, 10) : 0;
	pid_t is = was > 0 ? process_of_successor(m, was) : 0;
	int fd;

	if (is <= 0 || k->pidfds == TAKEN_WATCHES || !version_owns(m->move.to, is, is))
		return;
	fd = (int)syscall(SYS_pidfd_open, is,
			  flags ? strtoul(flags + 7, NULL, 8) & O_NONBLOCK : 0);
	if (fd < 0)
		return;
	k->pidfd_row[k->pidfds] = *row;
	k->pidfd[k->pidfds++] = fd;
	if (k->moved < TAKEN_WATCHES)
		k->move[k->moved++] = row->fd;
}

static int pidfds_send(struct monitor *m, struct taking *k)
{
	struct taken_message message = { .kind = STATE_pidfds, .n = k->pidfds };

	(void)m;
	MUST(k->pidfds <= TAKEN_WATCHES);
	if (!k->pidfds)
		return 0;
	memcpy(message.descriptor, k->pidfd_row, k->pidfds * sizeof(k->pidfd_row[0]));
	return message_send(k, &message, sizeof(message.descriptor[0]), k->pidfd);
}

void kinds_drop(struct taking *k)
{
	for (unsigned i = 0; i < k->epolls; i++)
		close(k->epoll[i].own);
	k->epolls = 0;
	for (unsigned i = 0; i < k->pidfds; i++)
		close(k->pidfd[i]);
	k->pidfds = 0;
}

/* --- epoll sets, and what they are to be given anew --------------------------------------- */

/*
 * What it watches is asked when all is known that must be given anew.  The twin may be gone by
 * then, and its signalfds watched by nobody: the set itself still says that they are in it.
 */
static void epoll_look(struct monitor *m, struct taking *k, const struct taken_descriptor *row,
		       const char *info)
{
	int own;

	(void)m, (void)info;
	if (k->epolls == TAKEN_WATCHES)
		return;
	own = fcntl(k->fd[k->message.n], F_DUPFD_CLOEXEC, 0);
	if (own < 0)
		return;
	k->epoll[k->epolls].number = row->fd;
	k->epoll[k->epolls++].own = own;
}

static void signalfd_look(struct monitor *m, struct taking *k, const struct taken_descriptor *row,
			  const char *info)
{
	(void)m, (void)info;
	if (k->moved < TAKEN_WATCHES)
		k->move[k->moved++] = row->fd;
}

static bool number_in(const int *list, unsigned n, int number)
{
	for (unsigned i = 0; i < n; i++)
		if (list[i] == number)
			return true;
	return false;
}

/* What an epoll instance watches, by its fdinfo. */
static unsigned watches_read(const struct taking *k, unsigned set, struct taken_watch *w,
			     unsigned n)
{
	char path[64], line[256];
	FILE *f;

	MUST(n <= TAKEN_WATCHES && k->moved <= TAKEN_WATCHES);

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", k->epoll[set].own);
	f = fopen(path, "re");
	while (f && n < TAKEN_WATCHES && fgets(line, sizeof(line), f)) {
		w[n] = (struct taken_watch){ .epfd = k->epoll[set].number };
		if (sscanf(line, "tfd: %d events: %x data: %lx", &w[n].fd, &w[n].events,
			   &w[n].data) == 3)
			n += number_in(k->move, k->moved, w[n].fd);
	}
	if (f)
		fclose(f);
	return n;
}

static int watches_send(struct monitor *m, struct taking *k)
{
	struct taken_message message = { .kind = STATE_watches };

	(void)m;
	for (unsigned i = 0; k->moved && i < k->epolls; i++)
		message.n = watches_read(k, i, message.watch, message.n);
	return message.n ? message_send(k, &message, sizeof(message.watch[0]), NULL) : 0;
}

/* --- what has no number ------------------------------------------------------------------- */

/* What it has not heard of. */
static int signals_send(struct monitor *m, struct taking *k)
{
	struct taken_message message = { .kind = STATE_signals };
	unsigned at = 0;
	int result = 0;

	MUST(k->twin > 0);

	while (!result && (message.n = untold_take(m, k->twin, &at, message.signal, TAKEN_SIGNALS)))
		result = message_send(k, &message, sizeof(message.signal[0]), NULL);
	return result;
}

int directory_open(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/cwd", pid);
	return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/*
 * The working directory, which the successor has found by its name: that may be another's by
 * now, or nobody's.  Where paths of one version are others' of another it has its own.
 */
static int directory_send(struct monitor *m, struct taking *k)
{
	const struct follower_options *from = m->move.from->options, *to = m->move.to->options;
	struct taken_message message = { .kind = STATE_directory, .n = 1 };
	int fd, result;

	if ((from && from->maps) || (to && to->maps))
		return 0;
	fd = ahead_directory(k->twin);
	if (fd < 0)
		fd = directory_open(k->twin);
	if (fd < 0)
		return 0;
	result = message_send(k, &message, sizeof(message.descriptor[0]), &fd);
	close(fd);
	return result;
}

static int nothing_sent(struct monitor *m, struct taking *k)
{
	(void)m, (void)k;
	return 0;
}

/* What the twin has written to its own /proc we write to the other's. */
void oom_score_bring(pid_t twin, pid_t pid)
{
	char path[64], text[16];
	int from, to;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", twin);
	from = open(path, O_RDONLY | O_CLOEXEC);
	n = from < 0 ? -1 : read(from, text, sizeof(text));
	snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", pid);
	to = n > 0 ? open(path, O_WRONLY | O_CLOEXEC) : -1;
	if (to >= 0 && write(to, text, (size_t)n) < 0)
		say_log("take", "oom_score_adj of %d: %s", pid, strerror(errno));
	if (from >= 0)
		close(from);
	if (to >= 0)
		close(to);
}

/*
 * Followers are SCHED_BATCH whatever the program has chosen, and who leads is not: but whose
 * twin is.  The other's ids are a version's word: it is looked whether the process has such a
 * thread.
 */
void policy_bring(struct monitor *m, const struct version *from, pid_t twin,
		  const struct version *to, pid_t pid)
{
	const struct sched_param none = { 0 };
	char task[64];

	LANES_EACH(m, from->index, i) {
		const struct lane *l = lane_at(m, from->index, i);
		pid_t tid = cursor_at(m, to->index, i)->owner;

		if (l->pid != twin || l->owner <= 0 || tid <= 0 ||
		    sched_getscheduler(l->owner) != SCHED_BATCH)
			continue;
		snprintf(task, sizeof(task), "/proc/%d/task/%d", pid, tid);
		if (access(task, F_OK) == 0 && sched_setscheduler(tid, SCHED_BATCH, &none) < 0)
			say_log("take", "policy of %d: %s", tid, strerror(errno));
	}
}

/* --- the table ---------------------------------------------------------------------------- */

static void nothing_seen(struct monitor *m, struct taking *k, const struct taken_descriptor *row,
			 const char *info)
{
	(void)m, (void)k, (void)row, (void)info;
}

static const struct {
	enum state_kind kind;
	const char *known_as;
	void (*look)(struct monitor *m, struct taking *k, const struct taken_descriptor *row,
		     const char *info);
} handed[] = {
#define HANDED(name, known_as, look, ...) { STATE_##name, known_as, look },
#include "engine/abi/state.def"
};

#define HANDED_KINDS	(sizeof(handed) / sizeof(handed[0]))

/* By the name that the kernel gives our copy: the fdinfo of an epoll set is all that it has. */
enum state_kind kind_of(int fd)
{
	char path[32], name[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, name, sizeof(name) - 1);
	name[n < 0 ? 0 : n] = 0;
	for (unsigned i = 0; i < HANDED_KINDS; i++)
		if (handed[i].known_as[0] && strstr(name, handed[i].known_as))
			return handed[i].kind;
	return STATE_plain;
}

void kind_look(struct monitor *m, struct taking *k, const struct taken_descriptor *row,
	       const char *info)
{
	for (unsigned i = 0; i < HANDED_KINDS; i++)
		if (handed[i].kind == row->kind)
			handed[i].look(m, k, row, info);
}

/* That was all, and so many descriptors; and that it leads, where nobody is waited for. */
static int end_send(struct taking *k)
{
	struct taken_message end = { .kind = k->leads ? TAKEN_LEAD : TAKEN_END,
				     .n = (uint32_t)fetched() };
	struct iovec iov = { &end, TAKEN_HEAD };

	MUST(fetched() >= 0);
	return text_send(k, &(struct msghdr){ .msg_iov = &iov, .msg_iovlen = 1 });
}

int kinds_send(struct monitor *m, struct taking *k)
{
	int result = 0;

#define SENT(name, rows, send, ...) result = result ? result : send(m, k);
#include "engine/abi/state.def"
	return result ? result : end_send(k);
}
