/*
 * mve stop: ask a session's server to end, and wait until it has.
 */
#include <signal.h>
#include <time.h>

#include "engine/mve/commands.h"
#include "engine/mve/show.h"
#include "engine/outside/say.h"

#define STOP_WAIT_MS	10000
#define LOOK_MS		20

static const char help[] =
	"usage: mve stop NAME [--kill]\n"
	"\n"
	"Sends SIGTERM (with --kill SIGKILL) to the server of the session and waits\n"
	"up to 10 seconds for its end.\n";

static bool ended(const struct session *s)
{
	struct timespec look = { 0, LOOK_MS * 1000000L };

	for (int ms = 0; ms < STOP_WAIT_MS; ms += LOOK_MS) {
		if (process_began(s->server) != s->server_began &&
		    session_state(s) == SESSION_GONE)
			return true;
		nanosleep(&look, NULL);
	}
	return false;
}

int cmd_stop(int argc, char **argv)
{
	struct look l = look_take(argc, argv, "nk", help);
	struct session s;
	int result = l.code;

	if (result)
		return result;
	result = session_load(&s, l.name);
	if (result || session_state(&s) == SESSION_GONE) {
		say_error("mve ps lists the sessions", "no such session: %s", l.name);
		return EXIT_NO;
	}
	if (process_began(s.server) == s.server_began)
		kill(s.server, l.kill ? SIGKILL : SIGTERM);
	if (ended(&s)) {
		if (!session_load(&s, l.name) && session_state(&s) == SESSION_GONE)
			session_remove(&s);
		return EXIT_OK;
	}
	say_error("mve stop --kill does not ask", "still running: %s (pid %d)", l.name, s.server);
	return EXIT_NO;
}
