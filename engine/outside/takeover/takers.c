/*
 * The processes of the successor that have been sent what they are to take, and wait: each says
 * by its own socket when all is under its number.  When all have, they lead, and their twins
 * end; one that cannot ends, or all of it is undone (takeover_fail.c).
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/outside/follow/verdicts.h"
#include "engine/outside/kernel/asker.h"
#include "engine/outside/kernel/process.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/serve.h"
#include "engine/outside/monitor/versions.h"
#include "engine/outside/session/descriptors.h"
#include "engine/outside/session/reach.h"
#include "engine/outside/takeover/take.h"
#include "engine/outside/takeover/takeover.h"
#include "engine/outside/takeover/taking.h"

#define DYING_MS	3000	/* for last words, and a core file */

/* --- those that wait -------------------------------------------------------------------- */

void takers_close(struct taker *k)
{
	if (k->socket >= 0)
		descriptors_close(k->request.pid, &k->socket, 1);
	k->socket = -1;
}

/* One for each slot: there are no more, however many threads come and go in it. */
static struct taker *taker_at(const struct move *mv, const struct version *v, uint32_t slot)
{
	MUST(mv->takers <= mv->taker_room);
	for (unsigned i = 0; i < mv->takers; i++)
		if (mv->taker[i].version == v && mv->taker[i].request.slot == slot &&
		    !mv->taker[i].answered)
			return &mv->taker[i];
	return NULL;
}

bool takers_room(struct move *mv)
{
	unsigned room = mv->taker_room ? mv->taker_room * 2 : 16;
	struct taker *more;

	if (mv->takers < mv->taker_room)
		return true;
	more = realloc(mv->taker, room * sizeof(*more));
	if (!more)
		return false;
	mv->taker = more;
	mv->taker_room = room;
	return true;
}

static void lacks_note(struct move *mv, const struct taker *k, const char *why)
{
	if (k->version == mv->to)
		snprintf(mv->lacks, sizeof(mv->lacks), "process %d %s", k->request.pid, why);
}

int64_t takers_add(struct move *mv, struct taker *k)
{
	struct taker *before = taker_at(mv, k->version, k->request.slot);

	if (before) {	/* its thread has ended, or would not have been heard here */
		takers_close(before);
		lacks_note(mv, before, "ended while it took");
		*before = *k;
		return REPLY_LATER;
	}
	if (takers_room(mv)) {
		mv->taker[mv->takers++] = *k;
		return REPLY_LATER;
	}
	takers_close(k);
	lacks_note(mv, k, "cannot wait: the monitor has no memory");
	return -ENOMEM;
}

void takers_forget(struct move *mv)
{
	for (unsigned i = 0; i < mv->takers; i++)
		takers_close(&mv->taker[i]);
	mv->takers = 0;
	wire_end(mv->to);
}

bool taker_waits(const struct move *mv, const struct version *v, uint32_t slot)
{
	const struct taker *k = taker_at(mv, v, slot);

	return k && !thread_ended(k->request.pid, k->request.tid);
}

struct hearing {
	int socket;
	struct taken_reply reply;
};

static long reply_receive(void *room)
{
	struct hearing *h = room;
	ssize_t got = recv(h->socket, &h->reply, sizeof(h->reply), MSG_DONTWAIT);

	return got < 0 ? -errno : got;
}

/*
 * Its process has both ends.  Another of its threads may read by ours, and let whoever wants to
 * read there wait; what has been put in beside is closed by us, and that may wait, too.
 */
static long reply_read(const struct taker *k, struct taken_reply *reply)
{
	struct pollfd some = { k->socket, POLLIN, 0 };
	struct hearing *h = poll(&some, 1, 0) > 0 ? reach_room(k->request.pid, sizeof(*h)) : NULL;
	long got;

	if (!h)
		return -EAGAIN;
	h->socket = k->socket;
	got = reach_try(reply_receive, NULL);
	*reply = got > 0 ? h->reply : (struct taken_reply){ 0 };
	return got == -ETIME ? -EAGAIN : got;
}

/* It says so by its own socket, of nobody but itself; and that it has ended, until it leads. */
static void taker_hear(struct move *mv, struct taker *k)
{
	struct taken_reply reply;
	long got = reply_read(k, &reply);

	if (got == -EAGAIN || got == -EINTR)
		return;
	if (k->told && got != sizeof(reply)) {	/* it leads, or has ended: that is seen as ever */
		takers_close(k);
		return;
	}
	if (!k->ready && got == sizeof(reply) && !reply.error && reply.n == k->n) {
		k->ready = true;
		return;
	}
	takers_close(k);
	k->ready = false;
	k->n = -EPIPE;
	if (got == sizeof(reply))
		snprintf(mv->lacks, sizeof(mv->lacks), "process %d has %u descriptors: %s",
			 k->request.pid, reply.n, strerror(reply.error < 0 ? -reply.error : 0));
	else
		lacks_note(mv, k, "ended while it took");
}

unsigned takers_hear(struct move *mv)
{
	unsigned ready = 0;

	for (unsigned i = 0; i < mv->takers; i++) {
		struct taker *k = &mv->taker[i];

		if (k->version != mv->to || (k->answered && !k->told))
			continue;
		if (k->socket >= 0)
			taker_hear(mv, k);
		ready += k->ready && !k->answered;
	}
	return ready;
}

bool takers_wait(const struct move *mv)
{
	for (unsigned i = 0; i < mv->takers; i++)
		if (mv->taker[i].version == mv->to && !mv->taker[i].answered)
			return true;
	return false;
}

bool takers_have(const struct move *mv, const struct version *v, pid_t pid)
{
	for (unsigned i = 0; i < mv->takers; i++)
		if (mv->taker[i].version == v && mv->taker[i].request.pid == pid &&
		    !mv->taker[i].unasked)
			return true;
	return false;
}

bool takers_unasked(const struct move *mv)
{
	for (unsigned i = 0; i < mv->takers; i++)
		if (mv->taker[i].version == mv->to && mv->taker[i].unasked)
			return true;
	return false;
}

void takers_ask(struct move *mv, const struct version *v, pid_t pid)
{
	for (unsigned i = 0; i < mv->takers; i++) {
		struct taker *k = &mv->taker[i];

		if (v != mv->to || k->version != v || k->request.pid != pid || !k->unasked)
			continue;
		MUST(mv->sent && mv->taken >= k->answered);
		takers_close(k);
		mv->taken -= k->answered;
		mv->sent--;	/* of one twin, which is taken from anew */
		*k = mv->taker[--mv->takers];
		return;
	}
}

bool taker_is_guest(const struct move *mv)
{
	for (unsigned i = 0; i < mv->takers; i++)
		if (mv->taker[i].version == mv->to && mv->taker[i].ready && mv->taker[i].guest)
			return true;
	return false;
}

/* --- they lead, or end ------------------------------------------------------------------ */

/* The twin is needed no more; what it crashed of may have its way. */
static void twin_end(struct monitor *m, struct version *twin, pid_t pid, uint64_t began)
{
	if (m->move.keep && twin == m->move.from)
		return;
	if (held_leave(m, twin, pid)) {
		twin->dying_ms = now_ms() + DYING_MS;
		monitor_wake_after(m, DYING_MS);
		return;
	}
	MUST(pid > 0 && twin != leading(m));	/* who leads is nobody's twin */
	/* It may have ended long since: nobody else does. */
	process_signal(pid, began, SIGKILL);
}

/* It leads from here on. */
static void taker_lead(struct move *mv, struct taker *k)
{
	MUST(k->ready && k->version == mv->to);
	mv->taken++;
	mv->ready_us = now_us() - mv->began_us;
	mv->taken_ms = now_ms();
	mv->until_ms = mv->taken_ms + TAKE_MS;
	k->answered = true;
	if (!k->told)
		asker_answer_late(k->version, &k->request, k->n);
}

void takers_lead(struct monitor *m, struct move *mv)
{
	MUST(mv->to == leading(m));
	for (unsigned i = 0; i < mv->takers; i++) {
		struct taker *k = &mv->taker[i];

		if (k->version == mv->to && k->ready && !k->answered)
			taker_lead(mv, k);
	}
}

void takers_part(struct monitor *m, struct move *mv)
{
	unsigned left = 0, all = mv->takers;

	/* Not before: nobody who leads waits for a file, nor for the processor that writes it. */
	if (session_look(m))
		session_note(m);
	for (unsigned i = 0; i < all; i++) {
		struct taker k = mv->taker[i];

		if (k.version != mv->to || !k.answered) {
			mv->taker[left++] = k;
			continue;
		}
		mv->parted = true;
		takers_close(&k);
		if (process_began(k.twin) == k.twin_began &&
		    version_owns(k.version, k.request.pid, k.request.pid)) {
			oom_score_bring(k.twin, k.request.pid);
			policy_bring(m, k.holder, k.twin, k.version, k.request.pid);
		}
		twin_end(m, k.holder, k.twin, k.twin_began);
	}
	mv->takers = left;
}

bool takers_end(struct monitor *m, struct move *mv)
{
	unsigned left = 0;
	bool others = true;

	say_error(NULL, "%s/%s: %s", m->session.name, mv->to->name, mv->lacks);
	for (unsigned i = 0; i < mv->takers; i++) {
		struct taker k = mv->taker[i];

		if (k.version != mv->to || k.n >= 0 || k.answered) {
			mv->taker[left++] = k;
			continue;
		}
		takers_close(&k);
		/* Its inside ends it; nothing was sent that another could want. */
		if (k.unasked)
			version_kill_one(k.version, k.request.pid);
		else
			asker_answer_late(k.version, &k.request, k.n);
		others = mv->due > 1;
		mv->due -= others;
	}
	mv->takers = left;
	mv->lacks[0] = 0;
	return others;
}
