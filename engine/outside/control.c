/*
 * The control socket: one request and one answer per connection, both a line
 * of JSON.  Only the session's user may connect: the folder is closed to
 * others, and the peer's user is checked all the same.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "engine/outside/control.h"
#include "engine/outside/monitor.h"
#include "engine/outside/rules_load.h"
#include "engine/outside/say.h"
#include "engine/outside/witness.h"

#define MESSAGE_STEP	4096
#define MESSAGE_MAX	(4 << 20)
#define PEER_WAIT_S	2	/* a peer that is slower than this is dropped */
#define ANSWER_WAIT_S	5	/* a monitor may be busy */

/*
 * The socket's address by way of its open folder: a socket's path must be short,
 * and a session's need not be.  The folder's descriptor, or a negative errno.
 */
static int address_of(const struct session *s, struct sockaddr_un *a)
{
	int folder = open(s->folder, O_PATH | O_DIRECTORY | O_CLOEXEC);

	memset(a, 0, sizeof(*a));
	a->sun_family = AF_UNIX;
	snprintf(a->sun_path, sizeof(a->sun_path), "/proc/self/fd/%d/control", folder);
	return folder < 0 ? -errno : folder;
}

int control_open(const struct session *s)
{
	struct sockaddr_un a;
	int fd, result = 0, folder = address_of(s, &a);
	mode_t mask;

	if (folder < 0)
		return folder;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	mask = umask(0177);
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(fd, 8) < 0)
		result = -errno;
	umask(mask);
	close(folder);
	if (result && fd >= 0)
		close(fd);
	return result ? result : fd;
}

/*
 * A call with a time-out ends with EINTR when io_uring has work for its thread,
 * which no SA_RESTART prevents.
 */
#define AGAIN(n, call) do (n) = (call); while ((n) < 0 && errno == EINTR)

/* Sends a whole value and ends our half; a peer that has gone is no matter. */
static void message_send(int fd, const json_t *j)
{
	char *text = json_dumps(j, JSON_COMPACT);
	size_t len = text ? strlen(text) : 0;

	for (size_t at = 0; at < len;) {
		ssize_t n;

		AGAIN(n, send(fd, text + at, len - at, MSG_NOSIGNAL));
		if (n <= 0)
			break;
		at += (size_t)n;
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

static bool peer_is_user(int fd)
{
	struct ucred c;
	socklen_t n = sizeof(c);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c, &n) < 0)
		return false;
	return c.uid == geteuid() || c.uid == 0;
}

static json_t *error_json(const char *fmt, ...)
{
	char text[200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return json_pack("{s:s}", "error", text);
}

static struct version *version_asked(struct monitor *m, const json_t *ask)
{
	const char *name = json_string_value(json_object_get(ask, "follower"));

	return name ? version_named(m, name) : NULL;
}

/* A follower that lives, by its name; or NULL and *error. */
static struct version *follower_of(struct monitor *m, const json_t *ask, json_t **error)
{
	const char *name = json_string_value(json_object_get(ask, "follower"));
	struct version *v = version_asked(m, ask);

	if (!v)
		*error = error_json("no such follower: %s", name ? name : "");
	else if (v->index == m->leader)
		*error = error_json("it leads: %s", name);
	else if (v->state == VERSION_LEAVES)
		*error = error_json("another takeover is under way: %s", name);
	else if (!version_lives(v))
		*error = error_json("it has ended: %s: %s", name, v->why);
	return *error ? NULL : v;
}

static json_t *drop(struct monitor *m, const json_t *ask)
{
	json_t *error = NULL;
	struct version *v = follower_of(m, ask, &error), *ended = version_asked(m, ask);

	if (!v && ended && ended->again_ms) {
		ended->again_ms = 0;	/* it does not come again */
		json_decref(error);
		return json_pack("{s:b}", "done", 1);
	}
	if (!v)
		return error;
	follower_drop(v, VERDICT_MATCH, "by mve drop");
	return json_pack("{s:b}", "done", 1);
}

static json_t *promote(struct monitor *m, const json_t *ask)
{
	bool keep = json_is_true(json_object_get(ask, "keep"));
	char why[WHY_MAX];
	json_t *error = NULL;
	struct version *v = follower_of(m, ask, &error);

	if (!v)
		return error;
	if (takeover_promote(m, v, keep ? PROMOTE_KEEP : PROMOTE_END, why, sizeof(why)))
		return error_json("%s", why);
	return json_pack("{s:b}", "done", 1);
}

static json_t *rules(struct monitor *m, const json_t *ask)
{
	const char *object = json_string_value(json_object_get(ask, "object")), *why = "no object";
	json_t *error = NULL;
	struct version *v = follower_of(m, ask, &error);
	struct rules_bank *bank = v && object ? rules_read(object, &why) : NULL;

	if (!bank)
		return error ? error : error_json("%s: %s", object ? object : "", why);
	rules_put(v->brief, bank);
	free(bank);
	return json_pack("{s:b}", "done", 1);
}

/* A follower that comes late. */
static json_t *follow(struct monitor *m, const json_t *ask)
{
	const json_t *words = json_object_get(ask, "argv"), *word;
	const char *path = json_string_value(json_object_get(ask, "path"));
	struct follower_options like = {
		.name = json_string_value(json_object_get(ask, "name")),
		.again = json_is_true(json_object_get(ask, "again")),
		.rules_object = json_string_value(json_object_get(ask, "rules")),
	};
	char **argv = calloc(json_array_size(words) + 1, sizeof(*argv)), why[WHY_MAX];
	const struct version *v;
	size_t i;

	MUST(argv);
	json_array_foreach(words, i, word) {
		argv[i] = strdup(json_is_string(word) ? json_string_value(word) : "");
		MUST(argv[i]);
	}
	v = join_begin(m, path, argv, &like, why, sizeof(why));
	if (v)
		return json_pack("{s:b, s:s}", "done", 1, "follower", v->name);
	for (i = 0; argv[i]; i++)
		free(argv[i]);
	free(argv);
	return error_json("%s", why);
}

static json_t *reply_to(struct monitor *m, const json_t *ask, const char *what)
{
	if (!strcmp(what, "drop"))
		return drop(m, ask);
	if (!strcmp(what, "rules"))
		return rules(m, ask);
	if (!strcmp(what, "promote"))
		return promote(m, ask);
	if (!strcmp(what, "follow"))
		return follow(m, ask);
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
	json_t *ask = message_receive(fd), *reply;
	const char *what = json_string_value(json_object_get(ask, "do"));

	reply = reply_to(m, ask, what ? what : "");
	message_send(fd, reply);
	json_decref(ask);
	json_decref(reply);
}

void control_accept(struct monitor *m, int listening)
{
	int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0)
		return;
	patience(fd, PEER_WAIT_S);
	if (peer_is_user(fd))
		converse(m, fd);
	close(fd);
}

/* --- the other side ------------------------------------------------------------ */

json_t *control_ask(const struct session *s, const char *what)
{
	return control_ask_json(s, json_pack("{s:s}", "do", what));
}

json_t *control_ask_json(const struct session *s, json_t *ask)
{
	struct sockaddr_un a;
	json_t *reply = NULL;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), folder = address_of(s, &a);

	if (fd >= 0 && folder >= 0) {
		patience(fd, ANSWER_WAIT_S);
		if (!connect(fd, (struct sockaddr *)&a, sizeof(a))) {
			message_send(fd, ask);
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
