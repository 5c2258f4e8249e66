/*
 * A process of the successor takes its twin's descriptors: we fetch them from
 * the twin, which stands still, and send them on by the successor's own socket.
 * It is we who fetch, because a server that has given up its rights may not look
 * into another process.
 *
 * The twin is the process that the lane belonged to in the version that led
 * before, or, when that one failed before it had taken anything, in the one
 * before it: a lane gets its pid only after its process has taken.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/abi/boot.h"
#include "engine/abi/standing.h"
#include "engine/core/ring.h"
#include "engine/outside/follow/verdicts.h"
#include "engine/outside/kernel/asker.h"
#include "engine/outside/kernel/process.h"
#include "engine/outside/kernel/remote.h"
#include "engine/outside/kernel/rights.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/serve.h"
#include "engine/outside/monitor/streams.h"
#include "engine/outside/monitor/versions.h"
#include "engine/outside/start/auxv.h"
#include "engine/outside/start/image.h"
#include "engine/outside/takeover/take.h"
#include "engine/outside/takeover/takeover.h"
#include "engine/outside/takeover/untold.h"

#define BATCH		200	/* descriptors in one message */
#define SEND_WAIT_US	1000000

struct taken_row {
	int32_t fd;
	uint32_t flags;		/* enum taken_flags */
};

enum taken_flags {
	TAKEN_CLOEXEC = 1, TAKEN_SIGNALFD = 2, TAKEN_EPOLL = 4,
	TAKEN_ANEW = 8,		/* in the place of what came under this number before */
	TAKEN_PIDFD = 16,
};

/* A signalfd or pidfd in an epoll instance: the successor must put it in anew. */
struct taken_watch {
	int32_t epfd, fd;
	uint32_t events, pad;
	uint64_t data;
};

#define LAST		(-1)	/* in the place of a descriptor: what such a message has */
#define SIGNALS		(-2)
#define DIRECTORY	(-3)	/* the one that it works in */
#define SIGNALS_SENT	16	/* in one message */

#define DYING_MS	3000	/* for last words, and a core file */
/*
 * Limit (takeovers): signalfds in epoll sets, and pidfds of one process. Beyond: further
 * ones are not registered again, and stay the old leader's.
 */
#define WATCHES	64

struct batch {
	int socket;
	uint64_t wait_us;	/* for room in it, in all */
	unsigned n;
	unsigned epolls, signals;	/* of these kinds, in all */
	int epoll[WATCHES], signal[WATCHES];
	struct taken_row row[BATCH];
	int fd[BATCH];
	unsigned anews;		/* pidfds of the successor's processes, for the old leader's */
	struct taken_row anew[WATCHES];
	int anew_fd[WATCHES];
};

/* --- the twin ----------------------------------------------------------------------- */

static struct version *before(struct monitor *m, const struct version *v)
{
	/* A version's next is set when it is replaced: look for who points here. */
	for (unsigned i = 0; i < m->versions; i++)
		if (m->version[i].state == VERSION_LEAVES && m->conduct->next[i] == v->index)
			return &m->version[i];
	return NULL;
}

/* A thread that sleeps while it should lead has not begun its lane: any lane will do. */
static pid_t lane_process(struct monitor *m, const struct version *v, const struct version *asker,
			  pid_t pid, uint32_t lane)
{
	const struct lane *l = lane_at(m, v->index, lane);

	if (l->pid > 0)
		return l->pid;
	LANES_EACH(m, v->index, i) {
		l = lane_at(m, v->index, i);
		if (cursor_at(m, asker->index, i)->pid == pid && l->state == LANE_OPEN && l->pid > 0)
			return l->pid;
	}
	return 0;
}

/* The version and process that still hold the descriptors of the asker's twin. */
static struct version *holder(struct monitor *m, const struct version *asker, pid_t asks,
			      uint32_t lane, pid_t *pid)
{
	struct version *v = m->move.from;

	for (unsigned hops = 0; v && hops < VERSIONS; hops++, v = before(m, v)) {
		*pid = lane_process(m, v, asker, asks, lane);
		if (*pid > 0 && (takeover_stands(m, v, *pid) || version_owns(v, *pid, *pid)))
			return v;
	}
	return NULL;
}

/* The twin is needed no more; what it crashed of may have its way. */
static void twin_end(struct monitor *m, struct version *twin, pid_t pid)
{
	if (m->move.keep && twin == m->move.from)
		return;
	if (held_leave(m, twin, pid)) {
		twin->dying_ms = now_ms() + DYING_MS;
		monitor_wake_after(m, DYING_MS);
		return;
	}
	kill(pid, SIGKILL);
}

/* --- sending -------------------------------------------------------------------------- */

/*
 * Its socket may be filled by itself, and be given any time to wait in (SO_SNDTIMEO) while we
 * send: it is we who wait, and the whole taking has so long.
 */
static int message_send(struct batch *b, const struct msghdr *m)
{
	while (sendmsg(b->socket, m, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
		struct pollfd room = { b->socket, POLLOUT, 0 };
		uint64_t begin = now_us(), waited;

		if (errno != EAGAIN || !b->wait_us)
			return -errno;
		poll(&room, 1, (int)(b->wait_us / 1000) + 1);
		waited = now_us() - begin;
		b->wait_us -= waited < b->wait_us ? waited : b->wait_us;
	}
	return 0;
}

static int text_send(struct batch *b, const void *text, size_t len)
{
	struct iovec iov = { (void *)text, len };
	const struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

	return message_send(b, &m);
}

static int rows_send(struct batch *b, const struct taken_row *row, unsigned n, const int *fd,
		     unsigned fds)
{
	char control[CMSG_SPACE(BATCH * sizeof(int))] = { 0 };
	struct iovec iov = { (void *)row, n * sizeof(*row) };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *c;

	if (fds) {
		m.msg_control = control;
		m.msg_controllen = CMSG_SPACE(fds * sizeof(int));
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(fds * sizeof(int));
		memcpy(CMSG_DATA(c), fd, fds * sizeof(int));
	}
	return message_send(b, &m);
}

static void batch_drop(struct batch *b)
{
	for (unsigned i = 0; i < b->n; i++)
		close(b->fd[i]);
	b->n = 0;
}

static void anew_drop(struct batch *b)
{
	for (unsigned i = 0; i < b->anews; i++)
		close(b->anew_fd[i]);
	b->anews = 0;
}

static int batch_flush(struct batch *b)
{
	int result = b->n ? rows_send(b, b->row, b->n, b->fd, b->n) : 0;

	batch_drop(b);
	return result;
}

/* --- pidfds --------------------------------------------------------------------------- */

/* The successor's process in the place of this one of the old leader's; or 0. */
static pid_t process_of_successor(struct monitor *m, pid_t pid)
{
	const struct version *v = m->move.from;

	for (unsigned hops = 0; v && hops < VERSIONS; hops++, v = before(m, v))
		LANES_EACH(m, v->index, i) {
			const struct lane *l = lane_at(m, v->index, i);

			if (l->pid == pid && l->state == LANE_OPEN)
				return cursor_at(m, m->move.to->index, i)->pid;
		}
	return 0;
}

/* A pidfd of a process that goes with the old leader: another one behind it. */
static void pidfd_look(struct monitor *m, struct batch *b, const struct taken_row *row,
		       const char *info)
{
	const char *pid = strstr(info, "\nPid:\t"), *flags = strstr(info, "flags:\t");
	pid_t was = pid ? (pid_t)strtol(pid + 6, NULL, 10) : 0;
	pid_t is = was > 0 ? process_of_successor(m, was) : 0;
	int fd;

	if (is <= 0 || b->anews == WATCHES || !version_owns(m->move.to, is, is))
		return;
	fd = (int)syscall(SYS_pidfd_open, is,
			  flags ? strtoul(flags + 7, NULL, 8) & O_NONBLOCK : 0);
	if (fd < 0)
		return;
	b->anew[b->anews] = *row;
	b->anew[b->anews].flags |= TAKEN_ANEW;
	b->anew_fd[b->anews++] = fd;
	if (b->signals < WATCHES)
		b->signal[b->signals++] = row->fd;
}

static int anew_send(struct batch *b)
{
	int result = b->anews ? rows_send(b, b->anew, b->anews, b->anew_fd, b->anews) : 0;

	anew_drop(b);
	return result;
}

/* --- signalfds in epoll instances ----------------------------------------------------- */

static bool number_in(const int *list, unsigned n, int number)
{
	for (unsigned i = 0; i < n; i++)
		if (list[i] == number)
			return true;
	return false;
}

/* What an epoll instance watches, by its fdinfo. */
static unsigned watches_read(const struct batch *b, pid_t twin, int epfd, struct taken_watch *w,
			     unsigned n)
{
	char path[64], line[256];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", twin, epfd);
	f = fopen(path, "re");
	while (f && n < WATCHES && fgets(line, sizeof(line), f)) {
		w[n] = (struct taken_watch){ .epfd = epfd };
		if (sscanf(line, "tfd: %d events: %x data: %lx", &w[n].fd, &w[n].events,
			   &w[n].data) == 3)
			n += number_in(b->signal, b->signals, w[n].fd);
	}
	if (f)
		fclose(f);
	return n;
}

/* --- signals that it has not heard of ------------------------------------------------- */

static int signals_send(struct monitor *m, struct batch *b, pid_t twin)
{
	struct { struct taken_row row; struct taken_signal signal[SIGNALS_SENT]; } s;
	unsigned n, at = 0;

	while ((n = untold_take(m, twin, &at, s.signal, SIGNALS_SENT))) {
		s.row = (struct taken_row){ SIGNALS, n };
		int result = text_send(b, &s, sizeof(s.row) + n * sizeof(s.signal[0]));

		if (result)
			return result;
	}
	return 0;
}

/*
 * The working directory, which the successor has found by its name: that may be another's by
 * now, or nobody's.  Where paths of one version are others' of another it has its own.
 */
static int directory_send(const struct monitor *m, struct batch *b, pid_t twin)
{
	const struct follower_options *from = m->move.from->options, *to = m->move.to->options;
	const struct taken_row row = { DIRECTORY, 0 };
	char path[64];
	int fd, result;

	if ((from && from->maps) || (to && to->maps))
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/cwd", twin);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	result = rows_send(b, &row, 1, &fd, 1);
	close(fd);
	return result;
}

/* --- the end -------------------------------------------------------------------------- */

static int batch_end(struct monitor *m, struct batch *b, pid_t twin)
{
	struct { struct taken_row row; struct taken_watch watch[WATCHES]; } last;
	int result = batch_flush(b);
	unsigned n = 0;

	if (!result)
		result = anew_send(b);
	if (!result)
		result = directory_send(m, b, twin);
	if (!result)
		result = signals_send(m, b, twin);
	if (result)
		return result;
	for (unsigned i = 0; b->signals && i < b->epolls; i++)
		n = watches_read(b, twin, b->epoll[i], last.watch, n);
	last.row = (struct taken_row){ LAST, n };
	return text_send(b, &last, sizeof(last.row) + n * sizeof(last.watch[0]));
}

/* --- fetching ------------------------------------------------------------------------- */

/*
 * One twin at a time.  The first batch is fetched before anybody asks for it: while the
 * successor wakes up and reads on, we have nothing else to do.
 */
static struct fetch {
	pid_t twin;		/* 0: none */
	int pidfd, info;
	dev_t pidfds;		/* the file system of pidfds; 0: they have none of their own */
	struct standing_fds known;
	uint32_t next;		/* number of `known`, where it knows all */
	DIR *list;		/* or NULL */
	int64_t n;		/* so far, or -errno */
	unsigned asked;		/* of those, by their fdinfo */
	bool all;
	struct batch b;
} fetch;

/*
 * What the kernel makes itself (epoll sets, signalfds, timers, ...) has no file type, but for
 * pidfds on newer kernels, which are of one file system.
 */
static bool is_plain(const struct fetch *f, int fd)
{
	struct stat st;

	return !fstat(fd, &st) && st.st_mode & S_IFMT && st.st_dev != f->pidfds;
}

/* By the name that the kernel gives our copy: the fdinfo of an epoll set is all that it has. */
static uint32_t kind_of(int fd)
{
	char path[32], name[32];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, name, sizeof(name) - 1);
	name[n < 0 ? 0 : n] = 0;
	return !strcmp(name, "anon_inode:[eventpoll]") ? TAKEN_EPOLL :
	       !strcmp(name, "anon_inode:[signalfd]") ? TAKEN_SIGNALFD :
	       strstr(name, "pidfd") ? TAKEN_PIDFD : 0;
}

/* Whether an execve closes it, by what fdinfo says, whose text is wanted of a pidfd. */
static uint32_t info_read(int info, int number, char *text, size_t size)
{
	char name[16];
	const char *at;
	ssize_t n;
	int fd;

	snprintf(name, sizeof(name), "%d", number);
	fd = openat(info, name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, size - 1);
	close(fd);
	text[n < 0 ? 0 : n] = 0;
	at = strstr(text, "flags:\t");
	return at && strtoul(at + 7, NULL, 8) & O_CLOEXEC ? TAKEN_CLOEXEC : 0;
}

static bool bit_of(const uint64_t *bits, int number)
{
	return bits[number / 64] >> number % 64 & 1;
}

static void kind_note(struct monitor *m, struct batch *b, const struct taken_row *row,
		      const char *info)
{
	if (row->flags & TAKEN_PIDFD)
		pidfd_look(m, b, row, info);
	if (row->flags & TAKEN_SIGNALFD && b->signals < WATCHES)
		b->signal[b->signals++] = row->fd;
	if (row->flags & TAKEN_EPOLL && b->epolls < WATCHES)
		b->epoll[b->epolls++] = row->fd;
}

static int fetch_one(struct monitor *m, struct fetch *f, int number)
{
	bool known = (uint32_t)number < f->known.looked && bit_of(f->known.open, number);
	struct taken_row *row = &f->b.row[f->b.n];
	int fd = (int)syscall(SYS_pidfd_getfd, f->pidfd, number, 0);
	char info[256] = "";

	if (fd < 0)
		return errno == EBADF ? 0 : -errno;
	*row = (struct taken_row){ number, is_plain(f, fd) ? 0 : kind_of(fd) };
	f->asked += !known || row->flags & TAKEN_PIDFD;
	if (!known || row->flags & TAKEN_PIDFD)
		row->flags |= info_read(f->info, number, info, sizeof(info));
	else if (bit_of(f->known.cloexec, number))
		row->flags |= TAKEN_CLOEXEC;
	kind_note(m, &f->b, row, info);
	f->b.fd[f->b.n++] = fd;
	return 0;
}

static int folder_open(pid_t pid, const char *what)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, what);
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void fetch_end(struct fetch *f)
{
	if (!f->twin)
		return;
	batch_drop(&f->b);
	anew_drop(&f->b);
	if (f->list)
		closedir(f->list);
	if (f->info >= 0)
		close(f->info);
	if (f->pidfd >= 0)
		close(f->pidfd);
	f->twin = 0;
}

/* The next number that may be open; -1: that was all. */
static int number_next(struct fetch *f)
{
	const struct dirent *d;

	while (!f->list && f->next < f->known.looked)
		if (bit_of(f->known.open, (int)f->next++))
			return (int)f->next - 1;
	while (f->list && (d = readdir(f->list)))
		if (d->d_name[0] != '.')
			return (int)strtol(d->d_name, NULL, 10);
	return -1;
}

/* As many as go into a message. */
static void fetch_more(struct monitor *m, struct fetch *f)
{
	int result = 0, number;

	while (f->n >= 0 && f->b.n < BATCH && !result) {
		number = number_next(f);
		f->all = number < 0;
		if (f->all)
			return;
		result = fetch_one(m, f, number);
		f->n = result ? result : f->n + 1;
	}
}

/* What the twin has found of its own descriptors; nothing, if it is not all there. */
static void known_read(struct fetch *f)
{
	const struct inside_image *im = inside_image();
	uint64_t base = process_vdso(f->twin);
	uint32_t magic = 0;

	if (!base || memory_peek(f->twin, base + im->boot, &magic, sizeof(magic)) < 0 ||
	    magic != BOOT_MAGIC ||
	    memory_peek(f->twin, base + im->standing, &f->known, sizeof(f->known)) !=
		    sizeof(f->known) ||
	    !f->known.valid || f->known.looked > STANDING_FDS)
		f->known.looked = 0;
}

/* Where it may have more than it has looked at, the kernel lists them. */
static bool list_open(struct fetch *f)
{
	int fds;

	f->next = 0;
	f->list = NULL;
	if (f->known.looked && process_table(f->twin) - 1 < f->known.looked)
		return true;
	fds = folder_open(f->twin, "fd");
	f->list = fds < 0 ? NULL : fdopendir(fds);
	return f->list;
}

static void fetch_begin(struct monitor *m, struct fetch *f, pid_t twin)
{
	struct stat st;

	fetch_end(f);
	f->twin = twin;
	f->pidfd = (int)syscall(SYS_pidfd_open, twin, 0);
	f->pidfds = fstat(f->pidfd, &st) || !(st.st_mode & S_IFMT) ? 0 : st.st_dev;
	f->info = folder_open(twin, "fdinfo");
	known_read(f);
	f->n = !list_open(f) || f->pidfd < 0 || f->info < 0 ? -ESRCH : 0;
	f->all = false;
	f->asked = 0;
	f->b.n = f->b.epolls = f->b.signals = f->b.anews = 0;
	fetch_more(m, f);
}

/* All of the twin's; how many, or -errno. */
static int64_t fetch_send(struct monitor *m, struct fetch *f, int socket)
{
	int result = 0;

	f->b.socket = socket;
	f->b.wait_us = SEND_WAIT_US;
	while (f->n >= 0 && !result && !f->all) {
		result = batch_flush(&f->b);
		fetch_more(m, f);
	}
	if (f->n >= 0 && !result)
		result = batch_end(m, &f->b, f->twin);
	return result ? result : f->n;
}

uint64_t take_prepare(struct monitor *m, pid_t twin)
{
	uint64_t begin = now_us();

	fetch_begin(m, &fetch, twin);
	return now_us() - begin;
}

void take_over(void)
{
	fetch_end(&fetch);
}

static int64_t take(struct monitor *m, pid_t asker, int theirs, pid_t twin)
{
	int socket = asker_socket(asker, theirs);
	int64_t n = socket;

	if (fetch.twin != twin)
		fetch_begin(m, &fetch, twin);
	if (socket >= 0) {
		n = fetch_send(m, &fetch, socket);
		close(socket);
	}
	fetch_end(&fetch);
	return n;
}

/* What the twin has written to its own /proc is the kernel's, and no descriptor. */
static void oom_move(pid_t twin, pid_t pid)
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
 * Each twin is taken from once: over and over a worker would hold us up, or make it look
 * as if those had taken that have yet to.
 */
static bool twin_note(struct move *mv, pid_t twin)
{
	for (unsigned i = 0; i < mv->taken && i < MOVE_PROCESSES; i++)
		if (mv->twin[i] == twin)
			return false;
	if (mv->taken < MOVE_PROCESSES)
		mv->twin[mv->taken] = twin;
	mv->taken++;
	return true;
}

static void took_note(struct move *mv, int64_t n, uint64_t begin_us)
{
	mv->descriptors += n > 0 ? (unsigned)n : 0;
	mv->taken_us += now_us() - begin_us;
	mv->ready_us = now_us() - mv->began_us;
	mv->taken_ms = now_ms();
	mv->until_ms = mv->taken_ms + TAKE_MS;
}

/* REQ_TAKE: how many descriptors came through the socket, or -errno. */
int64_t take_serve(struct version *v, const struct request *r)
{
	struct monitor *m = v->monitor;
	struct move *mv = &m->move;
	uint32_t lane = lane_is(m, r->args[5]) ? (uint32_t)r->args[5] : LANES_ALL;
	uint64_t begin = now_us();
	struct version *twin;
	pid_t pid;
	int64_t n;

	if (v->index != m->leader || !mv->active || lane == LANES_ALL)
		return -EINVAL;
	twin = holder(m, v, r->pid, lane, &pid);
	say_log("take", "%d asks %lu us after the beginning; its twin found in %lu us", r->pid,
		begin - mv->began_us, now_us() - begin);
	n = !twin ? -ESRCH : !rights_cover(r->pid, pid) ? -EPERM :
	    !twin_note(mv, pid) ? -EALREADY : take(m, r->pid, (int)r->args[0], pid);
	say_log("take", "%ld descriptors sent after %lu us, %u by their fdinfo", n,
		now_us() - begin, fetch.asked);
	if (n != -EPERM && n != -EALREADY)
		took_note(mv, n, begin);
	if (n < 0 && n != -EALREADY && twin && version_may_say(v))
		say_error(NULL, "%s/%s: cannot take descriptors: lane %u, pid %d: %s",
			  m->session.name, v->name, lane, r->pid, strerror((int)-n));
	if (n >= 0 && twin)
		oom_move(pid, r->pid);
	/* Answered here: the twin's end is not to be waited for. */
	asker_answer(v, r, n);
	if (n >= 0)
		twin_end(m, twin, pid);
	else if (!twin)
		kill(r->pid, SIGKILL);	/* nothing is left of what it would serve with */
	return REPLY_LATER;
}
