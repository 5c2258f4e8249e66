/*
 * mve stop: ask a session's server to end, and wait until it has, and then until the
 * session has: followers may have to read what is left, and a sanitizer looks for leaks
 * in the end.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "engine/mve/commands.h"
#include "engine/mve/show.h"
#include "engine/outside/control/control.h"
#include "engine/outside/monitor/say.h"

#define SERVER_MS	10000	/* for the server's end */
#define SESSION_MS	30000	/* for the session's behind it, while its monitor answers nobody */
#define LOOK_MS		20

static const char help[] =
	"usage: mve stop NAME [--kill]\n"
	"\n"
	"Sends SIGTERM to the server of the session and waits up to 10 seconds for its\n"
	"end, and then for its followers'.  With --kill SIGKILL to all its processes.\n";

static bool server_ended(struct session *s)
{
	return process_began(s->server) != s->server_began;
}

static bool session_ended(struct session *s)
{
	return session_state(s) == SESSION_GONE;
}

/* It has ended, or has another server, which is noted. */
static bool session_moved(struct session *s)
{
	struct session now;
	bool other;

	/* What was read before knows neither the server nor the monitor that it has now. */
	if (session_load(&now, s->name))
		now = (struct session){ 0 };
	other = now.server != s->server || now.server_began != s->server_began;
	if (!session_ended(&now) && (!other || server_ended(&now)))
		return false;
	strcpy(now.name, s->name);
	*s = now;
	return true;
}

static bool within(int ms, bool (*is)(struct session *), struct session *s)
{
	struct timespec look = { 0, LOOK_MS * 1000000L };

	for (; !is(s); ms -= LOOK_MS) {
		if (ms <= 0)
			return false;
		nanosleep(&look, NULL);
	}
	return true;
}

/* The monitor's loop goes on, which gives followers their time to come to their ends. */
static bool monitor_answers(const struct session *s)
{
	json_t *answer = control_ask(s, "stop");

	json_decref(answer);
	return answer;
}

static bool session_moves(struct session *s)
{
	bool moves;

	do
		moves = within(SESSION_MS, session_moved, s);
	while (!moves && monitor_answers(s));
	return moves || session_moved(s);
}

/* False: it was not sent, which is said. */
static bool server_signal(const struct session *s, int sig)
{
	int result = sig == SIGKILL ? session_kill(s) : session_signal(s, sig);

	if (!result || result == -ESRCH)
		return true;
	if (result == -EPERM)
		say_error("mve status shows its versions",
			  "not a process of the session, so it is left alone: %s: pid %d",
			  s->name, s->server);
	else
		say_error("it may have become another user's", "cannot end: %s (pid %d): %s",
			  s->name, s->server, strerror(-result));
	return false;
}

/*
 * The server ends, and another of its processes may be the server then (a daemon that is
 * just beginning; a worker that outlives its master): it is asked as well.
 */
static int servers_end(struct session *s, int sig)
{
	do {
		if (!server_signal(s, sig))
			return EXIT_NO;
		if (!within(SERVER_MS, server_ended, s)) {
			say_error("mve stop --kill does not ask", "still running: %s (pid %d)",
				  s->name, s->server);
			return EXIT_NO;
		}
		if (!session_moves(s)) {
			say_error("mve status shows what is left of it",
				  "the server has ended, the session has not: %s", s->name);
			return EXIT_NO;
		}
	} while (!session_ended(s));
	return EXIT_OK;
}

int cmd_stop(int argc, char **argv)
{
	struct look l = look_take(argc, argv, "nk", help);
	struct session s;
	int result = l.code;

	if (result)
		return result;
	result = session_load(&s, l.name);
	if (look_fails(l.name, result))
		return EXIT_SYSTEM;
	if (result || session_state(&s) == SESSION_GONE) {
		say_error("mve ps lists the sessions", "no such session: %s", l.name);
		return EXIT_NO;
	}
	json_decref(control_ask(&s, "stop"));	/* what has left its version ends, too */
	result = servers_end(&s, l.kill ? SIGKILL : SIGTERM);
	if (result)
		return result;
	session_sweep(l.name);
	return EXIT_OK;
}
