/*
 * Receiving: a consumer of the subject, of messages from the recording's first on; where it fails,
 * of those behind the last that was taken.  The stream keeps what we do not fetch: no more than
 * some segments stand in the folder.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "engine/outside/ship/intake.h"
#include "engine/outside/ship/message.h"
#include "engine/outside/ship/spool.h"
#include "engine/ship/link.h"
#include "engine/ship/ship.h"

#define FETCH_MS	1000
#define FETCH_MESSAGES	64
#define IDLE_FETCHES	5	/* with nothing: is the consumer still there? */
#define AGAIN_FIRST_MS	100
#define AGAIN_LAST_MS	5000
#define ROOM_MS		20
#define GAP_MS		60000	/* what is missing comes again within this, while we listen */
/*
 * Limit (shipping): segments that a follower of a subject has on disk. Beyond: no more is fetched
 * until they are read; the stream keeps it.
 */
#define SEGMENTS_AHEAD	4

struct receiver {
	struct link link;
	struct ship_page *page;
	struct intake intake;
	natsSubscription *sub;
	uint64_t next;		/* the stream's number of the message behind the last one taken */
	uint32_t dropped;
	unsigned idle;
	uint64_t gap_ms;	/* since then something is missing; or 0 */
	bool done, wrong;
};

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void refuse(struct receiver *r, const char *why)
{
	r->wrong = true;
	state_say(SHIP_REFUSED, why);
}

/* --- where it begins ----------------------------------------------------------------- */

static bool nothing_yet(struct receiver *r)
{
	snprintf(r->link.why, sizeof(r->link.why), "nothing is on the subject %s yet",
		 r->link.address.subject);
	return false;
}

/*
 * A stream that is being made is known before it can keep anything, and nats-server 2.9 dies of
 * being asked for a message of it: so we ask first whether there are any.
 */
static bool messages_there(struct receiver *r)
{
	jsStreamInfo *info = NULL;
	jsErrCode error = 0;
	natsStatus s = js_GetStreamInfo(&info, r->link.js, r->link.stream, NULL, &error);
	bool any = s == NATS_OK && info->State.Msgs;

	jsStreamInfo_Destroy(info);
	return any || (s == NATS_OK ? nothing_yet(r) :
		       link_failed(&r->link, "cannot ask for the stream", s));
}

/* The subject's last message says where its recording begins. */
static bool beginning_find(struct receiver *r)
{
	natsMsg *last = NULL;
	jsErrCode error = 0;
	natsStatus s = js_GetLastMsg(&last, r->link.js, r->link.stream, r->link.address.subject,
				     NULL, &error);
	const struct ship_message *m;

	if (s == NATS_NOT_FOUND)
		return nothing_yet(r);
	if (s != NATS_OK)
		return link_failed(&r->link, "cannot read the subject's last message", s);
	m = (const struct ship_message *)natsMsg_GetData(last);
	if (message_wrong(m, (size_t)natsMsg_GetDataLength(last)))
		refuse(r, message_wrong(m, (size_t)natsMsg_GetDataLength(last)));
	else
		r->next = m->began ? m->began : natsMsg_GetSequence(last);
	natsMsg_Destroy(last);
	return !r->wrong;
}

static bool consumer_open(struct receiver *r)
{
	jsSubOptions o;
	jsErrCode error = 0;
	natsStatus s;

	jsSubOptions_Init(&o);
	o.Stream = r->link.stream;
	o.ManualAck = true;
	o.Config.DeliverPolicy = js_DeliverByStartSequence;
	o.Config.OptStartSeq = r->next;
	o.Config.AckPolicy = js_AckNone;
	o.Config.MemoryStorage = true;
	s = js_PullSubscribe(&r->sub, r->link.js, r->link.address.subject, NULL, NULL, &o, &error);
	return s == NATS_OK || link_failed(&r->link, "cannot read the subject", s);
}

/* --- messages ------------------------------------------------------------------------ */

/* What is missing was sent again by now, or the stream has dropped it. */
static void gap_look(struct receiver *r)
{
	if (r->gap_ms && !r->wrong && now() >= r->gap_ms + GAP_MS)
		refuse(r, "a part of the recording is no longer in the stream");
}

static void message_take(struct receiver *r, natsMsg *msg)
{
	jsMsgMetaData *meta = NULL;
	enum taken taken = intake_take(&r->intake, natsMsg_GetData(msg),
				       (size_t)natsMsg_GetDataLength(msg));

	r->page->messages++;
	r->page->again += taken == INTAKE_AGAIN;
	if (taken == INTAKE_WRONG)
		refuse(r, r->intake.why);
	if (taken == INTAKE_AHEAD && !r->gap_ms)
		r->gap_ms = now();
	if (taken == INTAKE_TAKEN)
		r->gap_ms = 0;
	r->done |= taken == INTAKE_OVER;
	if (natsMsg_GetMetaData(&meta, msg) == NATS_OK && meta->Sequence.Stream >= r->next)
		r->next = meta->Sequence.Stream + 1;
	jsMsgMetaData_Destroy(meta);
}

/* An ephemeral consumer goes when its server does, and nobody says so. */
static bool consumer_there(struct receiver *r)
{
	jsConsumerInfo *info = NULL;
	jsErrCode error = 0;
	natsStatus s;

	if (++r->idle < IDLE_FETCHES)
		return true;
	r->idle = 0;
	s = natsSubscription_GetConsumerInfo(&info, r->sub, NULL, &error);
	jsConsumerInfo_Destroy(info);
	return s == NATS_OK || link_failed(&r->link, "cannot read the subject", s);
}

/* False: the connection is of no use. */
static bool fetch(struct receiver *r)
{
	natsMsgList list = { 0 };
	jsErrCode error = 0;
	natsStatus s = natsSubscription_Fetch(&list, r->sub, FETCH_MESSAGES, FETCH_MS, &error);

	for (int i = 0; i < list.Count && !r->done && !r->wrong; i++)
		message_take(r, list.Msgs[i]);
	r->idle = list.Count ? 0 : r->idle;
	gap_look(r);
	if (s == NATS_OK)
		natsMsgList_Destroy(&list);
	if (s == NATS_OK)
		return true;
	if (natsConnection_IsClosed(r->link.nats))
		return link_failed(&r->link, "the connection is lost", NATS_CONNECTION_CLOSED);
	return s == NATS_TIMEOUT ? consumer_there(r) :
	       link_failed(&r->link, "cannot read the subject", s);
}

/* --- its life ------------------------------------------------------------------------ */

/* Segments that are read go; false: there are enough. */
static bool room_look(struct receiver *r)
{
	uint32_t taken = (uint32_t)__atomic_load_n(&r->page->tail.taken, __ATOMIC_RELAXED);

	spool_drop(SHIP_FD_FOLDER, &r->dropped, taken);
	return tail_segment(r->intake.place) < taken + SEGMENTS_AHEAD;
}

static bool is_over(const struct receiver *r)
{
	return r->done || r->wrong || monitor_over();
}

static void link_serve(struct receiver *r)
{
	unsigned pause;

	if (r->gap_ms)
		r->gap_ms = now();	/* nothing could come */
	r->page->connects++;
	state_say(SHIP_CONNECTED, "connected");
	while (!is_over(r)) {
		pause = ROOM_MS;
		if (!room_look(r))
			pause_grow(&pause, ROOM_MS);
		else if (!fetch(r))
			break;
	}
}

static bool begun_open(struct receiver *r)
{
	return link_open(&r->link, NULL, NULL) && link_stream(&r->link, false) &&
	       (r->next || (messages_there(r) && beginning_find(r))) && consumer_open(r);
}

static void link_end(struct receiver *r)
{
	natsSubscription_Destroy(r->sub);
	r->sub = NULL;
	link_close(&r->link);
	if (r->done)
		state_say(SHIP_DONE, "done");
	else if (!r->wrong)
		state_say(SHIP_TRIES, r->link.why);
}

int receive_all(const char *url, struct ship_page *page)
{
	static struct receiver r;
	unsigned pause = AGAIN_FIRST_MS;
	uint64_t before;

	r = (struct receiver){ .page = page };
	intake_begin(&r.intake, SHIP_FD_FOLDER, &page->tail);
	if (!link_begin(&r.link, url))
		refuse(&r, r.link.why);
	while (!is_over(&r)) {
		before = r.intake.bytes;
		if (begun_open(&r))
			link_serve(&r);
		link_end(&r);
		if (r.intake.bytes != before)
			pause = AGAIN_FIRST_MS;
		if (!is_over(&r))
			pause_grow(&pause, AGAIN_LAST_MS);
	}
	intake_end(&r.intake);
	while (!monitor_over()) {
		room_look(&r);
		pause = ROOM_MS;
		pause_grow(&pause, ROOM_MS);
	}
	spool_remove(SHIP_FD_FOLDER);
	return r.done ? 0 : 1;
}
