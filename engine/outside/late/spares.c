/*
 * Spares: with --spare N the session keeps N twins.  One that leads, or has ended, is
 * replaced: at once if it took over; later each time if it was lost, for what made it so may
 * do it again.  What is against it now is asked again: a look at what is known, until the
 * leader's threads have to stand for it.
 */
#include <string.h>

#include "engine/core/must.h"
#include "engine/outside/late/again.h"
#include "engine/outside/late/spares.h"
#include "engine/outside/late/twin.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/versions.h"
#include "engine/outside/monitor/wakes.h"
#include "engine/outside/print/text_json.h"

static void spare_ended(struct spares *s, struct version *v)
{
	MUST(!version_lives(v));
	v->spare = false;
	if (!version_judged(v))
		return;
	s->lost++;
	s->next_ms = again_when(&s->ends, v->follows_ms, AGAIN_MS);
	snprintf(s->why, sizeof(s->why), "%s: %s", v->name, v->why);
}

/* How many there are, or are about to be. */
static unsigned spares_count(struct monitor *m)
{
	unsigned n = 0;

	for (unsigned i = 0; i < m->versions; i++) {
		struct version *v = &m->version[i];

		if (!v->spare)
			continue;
		if (i == m->leader)
			v->spare = false;
		else if (version_lives(v))
			n++;
		else
			spare_ended(&m->spares, v);
	}
	return n;
}

/* What is against it for now is not worth a word: a server that starts may fork, and wait. */
static void spare_refused(struct monitor *m, const char *why, bool soon)
{
	struct spares *s = &m->spares;

	if (!again_refused(&s->tries, soon, &s->next_ms))
		return;
	snprintf(s->why, sizeof(s->why), "%s", why);
	say_error("it is tried again now and then; mve status shows it", "%s: no spare: %s",
		  m->session.name, why);
}

static void spare_make(struct monitor *m)
{
	static const struct follower_options spare;
	struct spares *s = &m->spares;
	char why[WHY_MAX];
	uint64_t stood_us = 0;
	bool passes = false;
	struct version *v = twin_begin(m, &spare, &stood_us, why, sizeof(why), &passes);

	if (stood_us > s->stood_us)
		s->stood_us = stood_us;
	if (!v) {
		spare_refused(m, why, passes && !stood_us);
		return;
	}
	v->spare = true;
	s->made++;
	s->tries = 0;
	s->next_ms = 0;
}

void spares_look(struct monitor *m)
{
	struct spares *s = &m->spares;
	uint64_t now;

	if (!m->options->spares || m->finishing || m->stopping)
		return;
	if (spares_count(m) >= m->options->spares)
		return;
	twin_want(m);
	if (now_ms() >= s->next_ms)
		spare_make(m);
	now = now_ms();
	monitor_wake_after(m, s->next_ms > now ? (unsigned)(s->next_ms - now) : 0);
}

json_t *spares_json(const struct monitor *m)
{
	const struct spares *s = &m->spares;
	json_int_t there = 0;

	if (!m->options->spares)
		return NULL;
	for (unsigned i = 0; i < m->versions; i++)
		there += m->version[i].spare && i != m->leader && version_lives(&m->version[i]);
	return json_pack("{s:i, s:I, s:I, s:I, s:I, s:o}", "wanted", (int)m->options->spares,
			 "there", there, "made", (json_int_t)s->made, "lost", (json_int_t)s->lost,
			 "stood_us_most", (json_int_t)s->stood_us, "why",
			 text_json(s->why));
}
