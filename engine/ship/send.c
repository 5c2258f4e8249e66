/*
 * Sending: slices of the segments, some at a time (a window), all acknowledged by the stream
 * before more are sent.  Where anything fails what is behind the last acknowledgement is sent
 * again, over a new connection: so one that breaks soon, and often, gets on, too.  Who receives
 * them sorts out what came twice.  Nobody waits for us: what is not acknowledged stands in the
 * folder.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/outside/ship/message.h"
#include "engine/outside/ship/spool.h"
#include "engine/ship/link.h"
#include "engine/ship/ship.h"

#define WINDOW		32	/* messages before an acknowledgement is waited for, at most */
#define ACK_MS		15000	/* none comes for so long */
#define ACK_LOOK_MS	50	/* the library waits on when the connection is gone */
#define LOOK_FIRST_MS	1	/* between two looks at what is settled: */
#define LOOK_LAST_MS	20
#define AGAIN_FIRST_MS	100	/* between two connections */
#define AGAIN_LAST_MS	5000
#define LEFT_MS		10000	/* the monitor is gone, and nothing moves */

struct sender {
	struct link link;
	struct ship_page *page;
	uint64_t recording[2];
	uint64_t bytes, place;	/* of the next slice */
	uint32_t dropped;	/* segments before it are */
	int fd;			/* of `segment` */
	uint32_t segment;
	uint32_t window;	/* messages: one, and more where a connection lasts */
	struct ship_mark end[WINDOW];	/* of each that is sent */
	uint32_t sent;
	uint32_t acks;		/* by the library's thread */
	uint64_t acked;		/* bytes: of all before them, too */
	uint64_t sequence;	/* of the last of these */
	bool over;		/* that is said, too */
	uint64_t moved_ms;
	uint8_t *message;
};

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* --- slices -------------------------------------------------------------------------- */

static bool segment_open(struct sender *s, uint32_t number)
{
	char name[32];

	if (s->fd >= 0 && s->segment == number)
		return true;
	if (s->fd >= 0)
		close(s->fd);
	snprintf(name, sizeof(name), LOG_NAME, number);
	s->fd = openat(SHIP_FD_FOLDER, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	s->segment = number;
	return s->fd >= 0;
}

/* Up to where the segment may be read; false: it cannot be. */
static bool segment_end(struct sender *s, uint64_t settled, uint64_t *end)
{
	struct stat is;

	if (!segment_open(s, tail_segment(s->place)))
		return false;
	*end = tail_offset(settled);
	if (tail_segment(settled) == s->segment)
		return true;
	if (fstat(s->fd, &is))
		return false;
	*end = (uint64_t)is.st_size;
	return true;
}

/* The next slice's size, behind the message's head; 0: there is none now; or a negative errno. */
static int slice_read(struct sender *s)
{
	uint64_t settled = CONSUME(tail_settled, &s->page->tail.settled), end;
	size_t most = link_payload(&s->link) - sizeof(struct ship_message);
	ssize_t n;

	if (settled <= s->place)
		return 0;
	if (!segment_end(s, settled, &end))
		return -errno;
	if (tail_offset(s->place) >= end) {
		if (tail_segment(settled) == s->segment)
			return 0;
		s->place = tail_place(s->segment + 1, 0);
		return slice_read(s);
	}
	end -= tail_offset(s->place);
	n = pread(s->fd, s->message + sizeof(struct ship_message), end < most ? end : most,
		  tail_offset(s->place));
	return n > 0 ? (int)n : n ? -errno : -EIO;
}

static struct ship_message *message_make(struct sender *s, uint32_t size, uint32_t flags)
{
	struct ship_message *m = (struct ship_message *)s->message;

	*m = (struct ship_message){ .bytes = s->bytes, .place = s->place, .flags = flags,
				    .began = s->page->began, .size = size };
	memcpy(m->recording, s->recording, sizeof(m->recording));
	message_seal(m);
	s->bytes += size;
	s->place += size;
	return m;
}

/* --- the stream ---------------------------------------------------------------------- */

/* One that is refused is a gap: what is behind it is sent again, with it. */
static void ack_take(struct sender *s, const struct ship_message *m)
{
	uint64_t end = m->bytes + m->size;

	if (m->bytes <= s->acked && end > s->acked)
		__atomic_store_n(&s->acked, end, __ATOMIC_RELAXED);
}

static void acked(jsCtx *js, natsMsg *msg, jsPubAck *ack, jsPubAckErr *error, void *ctx)
{
	struct sender *s = ctx;

	(void)js;
	(void)error;
	if (ack) {
		__atomic_store_n(&s->sequence, ack->Sequence, __ATOMIC_RELAXED);
		ack_take(s, (const struct ship_message *)natsMsg_GetData(msg));
		__atomic_fetch_add(&s->acks, 1, __ATOMIC_RELAXED);
	}
	natsMsg_Destroy(msg);
}

static bool publish(struct sender *s, const struct ship_message *m)
{
	natsStatus status = js_PublishAsync(s->link.js, s->link.address.subject, m,
					    (int)(sizeof(*m) + m->size), NULL);

	s->page->messages++;
	s->end[s->sent++] = (struct ship_mark){ .bytes = s->bytes, .place = s->place };
	return status == NATS_OK || link_failed(&s->link, "cannot send", status);
}

static natsStatus acks_wait(struct sender *s)
{
	uint64_t end = now() + ACK_MS;
	uint32_t before = 0, acks;
	jsPubOptions o;
	natsStatus status;

	jsPubOptions_Init(&o);
	o.MaxWait = ACK_LOOK_MS;
	do {
		status = js_PublishAsyncComplete(s->link.js, &o);
		acks = __atomic_load_n(&s->acks, __ATOMIC_RELAXED);
		if (acks != before)
			end = now() + ACK_MS;
		before = acks;
	} while (status == NATS_TIMEOUT && now() < end && !natsConnection_IsClosed(s->link.nats));
	if (status == NATS_TIMEOUT && natsConnection_IsClosed(s->link.nats))
		status = NATS_CONNECTION_DISCONNECTED;
	return status;
}

/* What was sent is the stream's; false: nobody knows of how much that is true. */
static bool window_acked(struct sender *s)
{
	natsStatus status = acks_wait(s);

	if (status != NATS_OK)
		return link_failed(&s->link, "not acknowledged", status);
	if (__atomic_load_n(&s->acks, __ATOMIC_RELAXED) == s->sent)
		return true;
	snprintf(s->link.why, sizeof(s->link.why), "the stream %.64s has refused a message",
		 s->link.stream);
	return false;
}

/* A sender that is killed anywhere leaves a mark that is whole. */
static const struct ship_mark *mark_read(const struct ship_page *p)
{
	return &p->mark[CONSUME(ship_marked, &p->marked) & 1];
}

static void mark_write(struct ship_page *p, const struct ship_mark *mark)
{
	p->mark[(p->marked + 1) & 1] = *mark;
	PUBLISH(ship_marked, &p->marked, p->marked + 1);
}

/* The mark is behind the last message that is acknowledged with all before it. */
static void window_mark(struct sender *s)
{
	uint64_t acked = __atomic_load_n(&s->acked, __ATOMIC_RELAXED);
	struct ship_page *p = s->page;
	uint32_t n = s->sent;

	MUST(n <= WINDOW);
	while (n && s->end[n - 1].bytes > acked)
		n--;
	if (!n || s->end[n - 1].bytes == mark_read(p)->bytes)
		return;
	if (!p->began)
		p->began = __atomic_load_n(&s->sequence, __ATOMIC_RELAXED);
	mark_write(p, &s->end[n - 1]);
	__atomic_store_n(&p->tail.acked, s->end[n - 1].bytes, __ATOMIC_RELAXED);
	if (p->drops)
		spool_drop(SHIP_FD_FOLDER, &s->dropped, tail_segment(s->end[n - 1].place));
	s->moved_ms = now();
}

static bool window_publish(struct sender *s)
{
	bool over = CONSUME(tail_over, &s->page->tail.over);
	int n = 0;

	s->sent = s->acks = 0;
	while (s->sent < s->window && (n = slice_read(s)) > 0)
		if (!publish(s, message_make(s, (uint32_t)n, 0)))
			return false;
	if (n < 0)
		snprintf(s->link.why, sizeof(s->link.why), "cannot read the recording: %s",
			 strerror(-n));
	else if (over && !n && s->sent < s->window)
		s->over = publish(s, message_make(s, 0, SHIP_OVER));
	return n >= 0;
}

/* 1: all of it is acknowledged; 0: there was nothing; -1: the connection is of no use. */
static int window_send(struct sender *s)
{
	bool sent = window_publish(s);

	if (sent && !s->sent)
		return 0;
	sent = sent && window_acked(s);
	s->over = s->over && sent;
	window_mark(s);
	s->window = s->window * 2 < WINDOW ? s->window * 2 : WINDOW;
	return sent ? 1 : -1;
}

/* --- its life ------------------------------------------------------------------------ */

static bool is_left(const struct sender *s)
{
	return monitor_over() && now() >= s->moved_ms + LEFT_MS;
}

/* Until it breaks, or all is sent. */
static void link_serve(struct sender *s)
{
	unsigned pause = LOOK_FIRST_MS;
	int result = 0;

	s->bytes = mark_read(s->page)->bytes;
	s->place = mark_read(s->page)->place;
	s->acked = s->bytes;
	s->window = 1;	/* of the first one the number is needed, too */
	s->page->connects++;
	state_say(SHIP_CONNECTED, "connected");
	while (result >= 0 && !s->over && !is_left(s)) {
		if (natsConnection_IsClosed(s->link.nats)) {
			snprintf(s->link.why, sizeof(s->link.why), "the connection is lost");
			break;
		}
		result = window_send(s);
		if (result)
			pause = LOOK_FIRST_MS;
		else
			pause_grow(&pause, LOOK_LAST_MS);
	}
}

/* Which recording it is; it has begun when we are started. */
static bool recording_read(struct sender *s)
{
	struct log_segment head;
	bool known = segment_open(s, tail_segment(mark_read(s->page)->place)) &&
		     pread(s->fd, &head, sizeof(head), 0) == sizeof(head);

	if (known)
		memcpy(s->recording, head.recording, sizeof(s->recording));
	else
		state_say(SHIP_TRIES, "cannot read the recording");
	return known;
}

int send_all(const char *url, struct ship_page *page)
{
	static struct sender s;
	unsigned pause = AGAIN_FIRST_MS;
	uint64_t before;

	s = (struct sender){ .page = page, .fd = -1, .moved_ms = now(),
			     .dropped = tail_segment(mark_read(page)->place),
			     .message = malloc(sizeof(struct ship_message) + SHIP_PAYLOAD) };
	if (!s.message || !recording_read(&s))
		return 1;
	while (!s.over && !is_left(&s)) {
		before = page->tail.acked;
		if ((s.link.address.servers || link_begin(&s.link, url)) &&
		    link_open(&s.link, acked, &s) && link_stream(&s.link, true))
			link_serve(&s);
		link_close(&s.link);
		if (s.over)
			state_say(SHIP_DONE, "done");
		else
			state_say(SHIP_TRIES, s.link.why);
		if (page->tail.acked != before)
			pause = AGAIN_FIRST_MS;
		if (!s.over)
			pause_grow(&pause, AGAIN_LAST_MS);
	}
	if (page->drops)
		spool_remove(SHIP_FD_FOLDER);
	return s.over ? 0 : 1;
}
