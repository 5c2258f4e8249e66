/*
 * Asking a session's monitor: a connection for each request, both its way and the
 * answer's a value of JSON up to the end of the sender's half.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "engine/outside/control/control.h"

#define MESSAGE_STEP	4096
#define MESSAGE_MAX	(16 << 20)
#define ANSWER_WAIT_S	10	/* a monitor may be busy */
/* One that is answered later, but for what could not be sent then. */
#define LATER_WAIT_S	(CONTROL_LATER_MS / 1000)

/* A call with a time-out ends with EINTR at a signal, which no SA_RESTART prevents. */
#define AGAIN(n, call) do (n) = (call); while ((n) < 0 && errno == EINTR)

/* A descriptor goes with the first byte. */
static ssize_t part_send(int fd, const char *text, size_t len, int with)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { .room = "" };
	struct iovec part = { (char *)text, len };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1 };
	ssize_t n;

	if (with >= 0) {
		control.head = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(int)),
						 .cmsg_level = SOL_SOCKET,
						 .cmsg_type = SCM_RIGHTS };
		memcpy(CMSG_DATA(&control.head), &with, sizeof(with));
		m.msg_control = &control;
		m.msg_controllen = sizeof(control);
	}
	AGAIN(n, sendmsg(fd, &m, MSG_NOSIGNAL));
	return n;
}

/* Sends a whole value and ends our half; a peer that has gone is no matter. */
static void message_send(int fd, const json_t *j, int with)
{
	char *text = json_dumps(j, JSON_COMPACT);
	size_t len = text ? strlen(text) : 0;

	for (size_t at = 0; at < len;) {
		ssize_t n = part_send(fd, text + at, len - at, with);

		if (n <= 0)
			break;
		at += (size_t)n;
		with = -1;
	}
	free(text);
	shutdown(fd, SHUT_WR);
}

/* Receives a value, up to the end of the peer's half; NULL for anything else. */
static json_t *message_receive(int fd)
{
	size_t len = 0, cap = 0;
	char *text = NULL;
	json_t *j;
	ssize_t n;

	do {
		if (len == cap) {
			char *more = cap < MESSAGE_MAX ? realloc(text, cap + MESSAGE_STEP) : NULL;

			if (!more)
				break;
			text = more;
			cap += MESSAGE_STEP;
		}
		AGAIN(n, recv(fd, text + len, cap - len, 0));
		len += n > 0 ? (size_t)n : 0;
	} while (n > 0);
	j = text ? json_loadb(text, len, 0, NULL) : NULL;
	free(text);
	return j;
}

static void patience(int fd, time_t seconds)
{
	struct timeval t = { seconds, 0 };

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t));
}

json_t *control_ask(const struct session *s, const char *what)
{
	return control_ask_json(s, json_pack("{s:s}", "do", what), -1);
}

json_t *control_ask_json(const struct session *s, json_t *ask, int with)
{
	struct sockaddr_un a;
	json_t *reply = NULL;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), folder = control_address(s, &a);

	if (fd >= 0 && folder >= 0) {
		patience(fd, with == CONTROL_LATER ? LATER_WAIT_S : ANSWER_WAIT_S);
		if (!connect(fd, (struct sockaddr *)&a, sizeof(a))) {
			message_send(fd, ask, with);
			reply = message_receive(fd);
		}
	}
	if (folder >= 0)
		close(folder);
	if (fd >= 0)
		close(fd);
	json_decref(ask);
	return reply;
}
