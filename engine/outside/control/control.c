/*
 * The control socket: one request and one answer per connection, both a value of JSON.
 *
 * The monitor's loop serves takeovers, programs that start, and followers: it never waits
 * for whoever speaks here.  A connection is read as far as there are bytes and written as
 * far as there is room, and the loop is told when there is more of either.  A connection
 * has LINK_MS from its beginning to its end, however busy it is; but one that asks for a
 * promotion hears how it ends when it has (control_promoted).  There are LINKS_MAX; who
 * comes then takes the place of the oldest, so that nobody is kept out by those who stay.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/outside/control/control.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/monitor/say.h"

/*
 * Limit (commands): connections to the control socket at one time. Beyond: the oldest one
 * is closed.
 */
#define LINKS_MAX	64
#define LINK_MS		10000
#define REQUEST_STEP	4096
/*
 * Limit (commands): bytes of one request to the monitor. Beyond: it is refused.
 */
#define REQUEST_MAX	(4 << 20)
#define QUEUE		256
_Static_assert(LINKS_MAX <= 256, "a row's number is a byte of what the loop is woken by");
_Static_assert(REQUEST_MAX % REQUEST_STEP == 0, "room grows by steps");

static struct link {
	bool used;
	int fd, object;		/* it came with the request; or -1 */
	uint32_t life;		/* of the row: who had it before is not meant */
	uint64_t until_ms;
	char *text;		/* of the request, then of the answer */
	size_t len, cap, at;
	bool answers;
	bool waits;		/* its answer comes later */
} links[LINKS_MAX];

/* --- the socket ---------------------------------------------------------------------- */

/* A socket's path must be short, and a session's need not be. */
int control_address(const struct session *s, struct sockaddr_un *a)
{
	int folder = session_folder(s);

	memset(a, 0, sizeof(*a));
	a->sun_family = AF_UNIX;
	snprintf(a->sun_path, sizeof(a->sun_path), "/proc/self/fd/%d/control", folder);
	return folder;
}

int control_open(const struct session *s)
{
	struct sockaddr_un a;
	int fd, result = 0, folder = control_address(s, &a);
	mode_t mask;

	if (folder < 0)
		return folder;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	mask = umask(0177);
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(fd, QUEUE) < 0)
		result = -errno;
	umask(mask);
	close(folder);
	if (result && fd >= 0)
		close(fd);
	return result ? result : fd;
}

/* --- connections ---------------------------------------------------------------------- */

/*
 * Wakes us by this row, as long as it is the same connection's.  Where there is no memory for
 * that, the connection ends when its time is over.
 */
static void link_poll(struct monitor *m, struct link *l)
{
	uint64_t row = (uint64_t)(l - links);

	MUST(l->used && row < LINKS_MAX);
	monitor_poll(m, l->fd, l->answers ? POLLOUT : POLLIN, WAKE_LINK,
		     row | (uint64_t)l->life << 8);
}

static void link_close(struct link *l)
{
	MUST(l->used && l->fd >= 0);
	shutdown(l->fd, SHUT_RDWR);	/* ends the poll, if there is one */
	close(l->fd);
	if (l->object >= 0)
		close(l->object);
	free(l->text);
	*l = (struct link){ .life = l->life + 1 };
}

/* What is to be sent; an error where there is no memory for an answer. */
static void answer_set(struct link *l, json_t *reply)
{
	MUST(l->used && !l->answers);	/* one answer to a connection */
	free(l->text);
	l->text = json_dumps(reply, JSON_COMPACT);
	l->len = l->text ? strlen(l->text) : 0;
	l->at = 0;
	l->answers = true;
	json_decref(reply);
}

static void link_write(struct monitor *m, struct link *l)
{
	MUST(l->answers && l->at <= l->len);
	while (l->at < l->len) {
		ssize_t n = send(l->fd, l->text + l->at, l->len - l->at,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			link_poll(m, l);
			return;
		}
		if (n <= 0)
			break;
		l->at += (size_t)n;
	}
	link_close(l);
}

static void link_serve(struct monitor *m, struct link *l)
{
	json_t *ask = json_loadb(l->text, l->len, 0, NULL);
	json_t *reply = control_serve(m, ask, l->object);

	json_decref(ask);
	if (!reply) {
		l->waits = true;
		l->until_ms = now_ms() + CONTROL_LATER_MS;
		return;
	}
	answer_set(l, reply);
	link_write(m, l);
}

void control_promoted(struct monitor *m, const char *why)
{
	for (struct link *l = links; l < links + LINKS_MAX; l++) {
		if (!l->used || !l->waits)
			continue;
		l->waits = false;
		l->until_ms = now_ms() + LINK_MS;
		answer_set(l, control_promotion(why));
		link_write(m, l);
	}
}

/* One descriptor is taken, which has come with the bytes; the others are closed. */
static void object_take(struct link *l, struct msghdr *m)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		int fd;

		for (size_t i = 0; c->cmsg_type == SCM_RIGHTS && i < n; i++) {
			memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
			if (l->object >= 0)
				close(l->object);
			l->object = fd;
		}
	}
}

static ssize_t part_receive(struct link *l)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(4 * sizeof(int))];
	} control;
	struct iovec part = { l->text + l->len, l->cap - l->len };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
			    .msg_controllen = sizeof(control) };
	ssize_t n;

	MUST(l->len < l->cap);	/* nothing read means the end, and not that there is no room */
	n = recvmsg(l->fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n >= 0)
		object_take(l, &m);
	return n;
}

static bool room_make(struct link *l)
{
	char *more;

	MUST(l->len <= l->cap && l->cap <= REQUEST_MAX && !l->answers);
	if (l->len < l->cap)
		return true;
	more = l->cap < REQUEST_MAX ? realloc(l->text, l->cap + REQUEST_STEP) : NULL;
	if (!more)
		return false;
	l->text = more;
	l->cap += REQUEST_STEP;
	return true;
}

/* Up to what has come; the request is whole when its sender has ended his half. */
static void link_read(struct monitor *m, struct link *l)
{
	for (;;) {
		ssize_t n;

		if (!room_make(l)) {
			answer_set(l, control_error("the request is too long"));
			link_write(m, l);
			return;
		}
		n = part_receive(l);
		if (n > 0) {
			l->len += (size_t)n;
			continue;
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			link_poll(m, l);
		else if (n == 0)
			link_serve(m, l);
		else
			link_close(l);
		return;
	}
}

/* --- from the loop -------------------------------------------------------------------- */

void control_go_on(struct monitor *m, uint64_t link)
{
	struct link *l = &links[(link & 0xff) % LINKS_MAX];

	if (!l->used || l->life != (uint32_t)(link >> 8))
		return;
	if (l->answers)
		link_write(m, l);
	else if (!l->waits)
		link_read(m, l);
}

/* A row for a connection: a free one, or the one that has had its place for longest. */
static struct link *link_take(void)
{
	struct link *oldest = &links[0];

	for (unsigned i = 0; i < LINKS_MAX; i++) {
		if (!links[i].used)
			return &links[i];
		if (links[i].until_ms < oldest->until_ms)
			oldest = &links[i];
	}
	link_close(oldest);
	return oldest;
}

static void link_begin(struct monitor *m, int fd)
{
	const char *refused = control_peer_refused(m, fd);
	struct link *l = link_take();

	MUST(!l->used && !l->text);
	*l = (struct link){ .used = true, .fd = fd, .object = -1, .life = l->life,
			    .until_ms = now_ms() + LINK_MS };
	monitor_wake_after(m, LINK_MS);
	if (!refused) {
		link_read(m, l);
		return;
	}
	answer_set(l, control_error("%s", refused));
	link_write(m, l);
}

/* One for each wake-up: whoever connects again and again has his turn like all others. */
void control_accept(struct monitor *m)
{
	int fd = accept4(m->control_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd >= 0)
		link_begin(m, fd);
	monitor_poll(m, m->control_fd, POLLIN, WAKE_CONTROL, 0);
}

void control_look(struct monitor *m)
{
	for (unsigned i = 0; i < LINKS_MAX; i++) {
		struct link *l = &links[i];

		if (l->used && now_ms() >= l->until_ms)
			link_close(l);
		else if (l->used)
			monitor_wake_after(m, (unsigned)(l->until_ms - now_ms()));
	}
}

bool control_begin(struct monitor *m)
{
	for (unsigned i = 0; i < LINKS_MAX; i++)
		if (links[i].used)
			link_poll(m, &links[i]);
	return monitor_poll(m, m->control_fd, POLLIN, WAKE_CONTROL, 0);
}
