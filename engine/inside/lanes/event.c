/*
 * Events: their numbers in the order of the process, and how one is written.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/mman.h>
#include <linux/time.h>

#include "engine/core/must.h"
#include "engine/core/ring.h"
#include "engine/core/walk.h"
#include "engine/inside/gate/memory.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/edge.h"
#include "engine/inside/lanes/event.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/signal/ucontext.h"

uint64_t lead_seq_now;
LEADS uint8_t locks_on, locks_led;

uint64_t lead_seq(void)
{
	return order_now(seq_draw());
}

uint64_t lead_seq_shown(struct thread *t, uint8_t *flags)
{
	return order_now(seq_shown(t, false, flags));
}

struct event *event_begin(struct thread *t, enum event_kind kind, long nr, int64_t result)
{
	return event_begin_at(t, kind, nr, result, 0);
}

struct event *lead_event(struct thread *t, enum event_kind kind, long nr, int64_t result)
{
	MUST(t->has_lane && !t->following);
	return event_begin(t, kind, nr, result);
}

void lead_event_end(struct thread *t)
{
	MUST(t->writer.open && t->writer.index == t->lane);
	lane_commit(t);
}

void lead_note(struct thread *t, enum event_kind kind, uint64_t value)
{
	event_begin(t, kind, 0, 0)->arg[0] = value;
	lane_commit(t);
}

void call_tell(struct thread *t, const struct walk *w, long nr)
{
	call_tell_at(t, w, nr, 0, 0);
}

/* The payload of an event that has been begun, and is no call's. */
void payload_tell(struct thread *t, const void *bytes, size_t size)
{
	uint64_t seq = t->writer.open->seq;
	size_t done = 0, n;

	MUST(t->has_lane && !t->following);

	for (; done < size; done += n) {
		n = writer_room(&t->writer);
		if (!n) {
			lane_commit(t);
			host_begin(&t->writer, EVENT_MORE, 0)->seq = seq;
			continue;
		}
		n = n < size - done ? n : size - done;
		bytes_copy(t->writer.at, (const uint8_t *)bytes + done, n);
		t->writer.at += n;
	}
}

/* Another thread of the process may have sent it, and have something ready for it. */
static bool sent_by_us(const struct thread *t, const uint8_t *info)
{
	int32_t pid = info_int(info, INFO_PID);

	return info_int(info, INFO_CODE) <= 0 && (pid == t->pid || pid == t->vpid);
}

/* The program's handler is about to run, at a boundary. */
void lead_signal(struct thread *t, const uint8_t *info, uint8_t flags)
{
	MUST(t->has_lane && !t->following);
	struct event *e = event_begin(t, EVENT_SIGNAL, 0, info_int(info, INFO_SIGNO));

	if (locks_on && !in_turns() && sent_by_us(t, info))
		object_take(t, OBJECT_SIGNALS, e->seq);
	e->flags = flags | edge_flag(t);
	edge_write(t, e);
	payload_tell(t, info, SIGINFO_SIZE);
	lane_commit(t);
}
