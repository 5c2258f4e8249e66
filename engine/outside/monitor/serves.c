/*
 * Who serves, and who may come to: as it is written down for those who look from outside.
 */
#include <string.h>

#include "engine/core/must.h"
#include "engine/outside/kernel/folder.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/versions.h"

_Static_assert(SESSION_NEXT >= VERSIONS, "each may come to serve");

static bool may_serve(const struct monitor *m, const struct version *v)
{
	return v->index == m->leader || v->state == VERSION_FOLLOWS || v->state == VERSION_LEAVES;
}

/* Those that may come to serve, as the kernel knows them. */
static void next_find(const struct monitor *m, struct session_next *next)
{
	unsigned n = 0;

	memset(next, 0, SESSION_NEXT * sizeof(*next));
	for (unsigned i = 0; i < m->versions; i++) {
		const struct version *v = &m->version[i];
		pid_t pid = may_serve(m, v) ? version_head(v) : 0;
		uint64_t began = pid ? version_head_began(v) : 0;

		if (!began || pid == m->session.server)
			continue;
		next[n].pid = pid;
		next[n++].began = began;
	}
}

static bool server_find(struct monitor *m)
{
	pid_t pid = version_head(leading(m));
	uint64_t began = version_head_began(leading(m));

	if (!began || (pid == m->session.server && began == m->session.server_began))
		return false;
	m->session.server = pid;
	m->session.server_began = began;
	return true;
}

bool session_look(struct monitor *m)
{
	struct session_next next[SESSION_NEXT];
	bool other = server_find(m);

	next_find(m, next);
	other |= memcmp(m->session.next, next, sizeof(next)) != 0;
	memcpy(m->session.next, next, sizeof(next));
	return other;
}

void session_command(struct session *s, char **argv)
{
	size_t n = 0;

	MUST(argv && *argv);

	s->argv = argv;
	for (; *argv && n < sizeof(s->command) - 1; argv++)
		n += (size_t)snprintf(s->command + n, sizeof(s->command) - n, "%s%s", n ? " " : "",
				      *argv);
}

void session_note(struct monitor *m)
{
	static int said;
	int result;

	session_look(m);
	if (leading(m)->argv)
		session_command(&m->session, leading(m)->argv);
	result = session_save(&m->session);
	if (result && result != said)
		say_error("mve ps and mve stop go by what it said before",
			  "%s: cannot write down who serves: %s", m->session.name,
			  folder_why(-result));
	said = result;
}

void session_expect(struct monitor *m, const struct version *v)
{
	pid_t pid = version_head(v);

	for (unsigned i = 0; i < SESSION_NEXT; i++)
		if (m->session.next[i].pid == pid)
			return;
	session_note(m);
}
