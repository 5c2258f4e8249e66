/* A follower whose twin has gone to the sections of another realm. */
#include <asm/unistd.h>
#include <linux/errno.h>

#include "engine/core/must.h"
#include "engine/core/ring.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/request.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/order/follow_realm.h"
#include "engine/inside/order/wait.h"
#include "engine/inside/realm/sections.h"

/* Its twin has gone there, and its own rights are as new. */
void realm_follow(struct thread *t, const struct event *e)
{
	uint32_t realm = (uint32_t)e->arg[0], lane = (uint32_t)e->arg[1] % LANES;
	uint32_t source = t->reader.cursor->source;
	int32_t fd[VERSIONS];
	long reply = sections_ask(t, realm, 0, fd);
	struct cursor *cursor;
	uint32_t life;

	MUST(t->following && source < VERSIONS);

	if (reply) {
		request_ask(t, REQ_VERDICT, VERDICT_UNSUPPORTED, DIFFERS_CALL, EPERM);
		for (;;)
			OWN1(__NR_exit_group, 1);
	}
	follow_take(t);
	cursor_done(&streams, t->lane);
	room_give(&t->reader);
	if (!sections_take(fd))
		OWN1(__NR_exit_group, 1);
	boot.realm = realm;
	t->lane = lane;
	/* The lane is as the monitor has opened it, for this thread's twin. */
	life = streams_section(&streams, source)->lane[lane].life;
	/* First: of a dead thread's cursor the monitor would say that all is read. */
	cursor = &streams_section(&streams, streams.self)->cursor[lane];
	cursor->pid = t->pid;
	cursor->owner = t->tid;
	cursor_begin(&streams, lane, life, source);
	reader_attach(&t->reader, &streams, lane);
	stream_describe(t);
}
