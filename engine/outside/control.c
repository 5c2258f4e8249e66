/*
 * The control socket: one request and one answer per connection, both a line
 * of JSON.  Only the session's user may connect: the folder is closed to
 * others, and the peer's user is checked all the same.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "engine/outside/control.h"
#include "engine/outside/monitor.h"
#include "engine/outside/witness.h"

#define ASK_MAX		4096
#define PEER_WAIT_S	2	/* a peer that is slower than this is dropped */

static int address_of(const struct session *s, struct sockaddr_un *a)
{
	int n;

	memset(a, 0, sizeof(*a));
	a->sun_family = AF_UNIX;
	n = snprintf(a->sun_path, sizeof(a->sun_path), "%s/control", s->folder);
	return (size_t)n < sizeof(a->sun_path) ? 0 : -ENAMETOOLONG;
}

int control_open(const struct session *s)
{
	struct sockaddr_un a;
	int fd, result = address_of(s, &a);
	mode_t mask;

	if (result)
		return result;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	mask = umask(0177);
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(fd, 8) < 0)
		result = -errno;
	umask(mask);
	if (result)
		close(fd);
	return result ? result : fd;
}

static void patience(int fd)
{
	struct timeval t = { PEER_WAIT_S, 0 };

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t));
}

static bool peer_is_user(int fd)
{
	struct ucred c;
	socklen_t n = sizeof(c);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c, &n) < 0)
		return false;
	return c.uid == geteuid() || c.uid == 0;
}

static json_t *reply_to(struct monitor *m, const char *what)
{
	if (!strcmp(what, "status"))
		return status_json(m);
	if (!strcmp(what, "audit on") && !m->audit)
		return witness_begin(m);
	if (!strcmp(what, "audit on") || !strcmp(what, "audit"))
		return witness_json(m);
	return json_pack("{s:s}", "error", "unknown request");
}

static void converse(struct monitor *m, int fd)
{
	char line[ASK_MAX];
	ssize_t n = recv(fd, line, sizeof(line) - 1, 0);
	json_t *ask, *reply;
	const char *what;

	if (n <= 0)
		return;
	line[n] = 0;
	ask = json_loads(line, 0, NULL);
	what = json_string_value(json_object_get(ask, "do"));
	reply = reply_to(m, what ? what : "");
	json_dumpfd(reply, fd, JSON_COMPACT);
	json_decref(ask);
	json_decref(reply);
}

void control_accept(struct monitor *m, int listening)
{
	int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0)
		return;
	patience(fd);
	if (peer_is_user(fd))
		converse(m, fd);
	close(fd);
}

/* --- the other side ------------------------------------------------------------ */

json_t *control_ask(const struct session *s, const char *what)
{
	struct sockaddr_un a;
	json_t *reply = NULL, *ask = json_pack("{s:s}", "do", what);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd >= 0 && !address_of(s, &a)) {
		patience(fd);
		if (!connect(fd, (struct sockaddr *)&a, sizeof(a)) &&
		    json_dumpfd(ask, fd, JSON_COMPACT) == 0)
			reply = json_loadfd(fd, 0, NULL);
	}
	if (fd >= 0)
		close(fd);
	json_decref(ask);
	return reply;
}
