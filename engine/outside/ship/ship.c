/*
 * The recorder writes into a folder as ever, and mve-ship sends what stands there, at its own
 * pace.  Between the two is a bound: where more waits than --spool allows the recorder ends, as it
 * does where a disk is full.  The leader knows of none of it.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/outside/record/recorder.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/wakes.h"
#include "engine/outside/ship/courier.h"
#include "engine/outside/ship/ship.h"
#include "engine/outside/ship/spool.h"

#define AGAIN_MS	1000	/* a courier that was lost */

static struct courier ours = { .socket = -1 };
static uint64_t lost_ms;

static const char *const states[SHIP_STATES] = {
	[SHIP_TRIES] = "tries", [SHIP_CONNECTED] = "connected", [SHIP_DONE] = "done",
	[SHIP_REFUSED] = "refused",
};

int ship_open(struct monitor *m)
{
	const struct run_options *o = m->options;
	int folder, result;

	if (!o->ship)
		return 0;
	folder = open(o->record, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	result = folder < 0 ? -errno : courier_open(&ours, "send", o->ship, folder);
	if (result) {
		say_error(NULL, "cannot ship: %s: %s", o->record, strerror(-result));
		return EXIT_SYSTEM;
	}
	ours.page->drops = o->spooled;
	recorder_bound(&ours.page->tail, o->spool);
	return 0;
}

static void courier_begin(struct monitor *m)
{
	int result = courier_start(&ours);

	lost_ms = 0;
	if (!result && ship_poll(m))
		return;
	lost_ms = now_ms();
	snprintf(ours.words, sizeof(ours.words), "cannot start mve-ship: %s", strerror(-result));
}

void ship_begin(struct monitor *m)
{
	if (ours.page)
		courier_begin(m);
}

bool ship_poll(struct monitor *m)
{
	return ours.socket < 0 || monitor_poll(m, ours.socket, POLLIN, WAKE_SHIP, 0);
}

static void words_pass(const struct monitor *m)
{
	char to[512];

	courier_name(&ours, to, sizeof(to));
	if (ours.state == SHIP_DONE)
		return;
	if (ours.state == SHIP_CONNECTED)
		say_error(NULL, "%s: ships to %s", m->session.name, to);
	else
		say_error("what waits is kept, up to --spool; mve status shows it",
			  "%s: cannot ship to %s: %s", m->session.name, to, ours.words);
}

void ship_serve(struct monitor *m)
{
	int heard = 0;

	while (ours.socket >= 0 && (heard = courier_hear(&ours)) > 0)
		words_pass(m);
	if (heard < 0 && ours.state != SHIP_DONE)
		lost_ms = now_ms();
	ship_poll(m);
}

void ship_look(struct monitor *m)
{
	if (lost_ms && now_ms() >= lost_ms + AGAIN_MS)
		courier_begin(m);
}

static uint64_t waiting(void)
{
	const struct log_tail *t = &ours.page->tail;
	uint64_t written = __atomic_load_n(&t->written, __ATOMIC_RELAXED);
	uint64_t acked = __atomic_load_n(&t->acked, __ATOMIC_RELAXED);

	return written > acked ? written - acked : 0;
}

void ship_end(struct monitor *m)
{
	if (!ours.page)
		return;
	courier_end(&ours);
	if (waiting())
		say_error("with --record DIR they are kept", "%s: the last %lu bytes are not "
			  "shipped: %s", m->session.name, (unsigned long)waiting(), ours.words);
}

json_t *ship_json(void)
{
	const struct ship_page *p = ours.page;
	char to[512];

	MUST(p && ours.url);
	courier_name(&ours, to, sizeof(to));
	return json_pack("{s:s, s:s, s:s, s:I, s:I, s:I}", "to", to, "state",
			 states[ours.state], "words", ours.words,
			 "shipped", (json_int_t)p->tail.acked, "waiting", (json_int_t)waiting(),
			 "connects", (json_int_t)p->connects);
}
