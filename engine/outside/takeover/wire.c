/*
 * The wire of a follower's first process (inside/takeover/wire.c): our end of a pair that it made
 * when its program began.  Where it is the one process that takes over, and nobody is waited
 * for, it is sent there what it is to take while it wakes and reads on, and need not ask.
 *
 * Who made the pair says the kernel; that it is still the version's first, its handle.
 */
#include <errno.h>

#include "engine/core/must.h"
#include "engine/outside/kernel/asker.h"
#include "engine/outside/kernel/process.h"
#include "engine/outside/kernel/rights.h"
#include "engine/outside/monitor/streams.h"
#include "engine/outside/monitor/versions.h"
#include "engine/outside/session/descriptors.h"
#include "engine/outside/takeover/take.h"
#include "engine/outside/takeover/takeover_parts.h"
#include "engine/outside/takeover/taking.h"

static bool is_first(const struct version *v, pid_t pid, uint64_t began)
{
	return pid && pid == version_head(v) && began == version_head_began(v);
}

void wire_drop(struct version *v)
{
	if (v->wire.pid)
		descriptors_close(v->wire.pid, &v->wire.fd, 1);
	v->wire.pid = 0;
}

int64_t wire_serve(struct version *v, const struct request *r)
{
	int fd;

	MUST(r->pid > 0);
	if (v->index == v->monitor->leader || r->pid != version_head(v))
		return -EINVAL;
	fd = asker_socket(r->pid, (int)r->args[0]);
	if (fd < 0)
		return fd;
	wire_drop(v);
	v->wire = (struct wire){ r->pid, version_head_began(v), r->slot, fd };
	return 0;
}

/* It reads what the twin has told. */
static bool reads(struct monitor *m, const struct move *mv, pid_t pid, pid_t twin)
{
	LANES_EACH(m, mv->from->index, i) {
		const struct lane *l = lane_at(m, mv->from->index, i);

		if (l->pid == twin && l->state == LANE_OPEN &&
		    cursor_at(m, mv->to->index, i)->pid == pid)
			return true;
	}
	return false;
}

void wire_begin(struct monitor *m, const struct move *mv)
{
	const struct wire *w = &mv->to->wire;
	bool sends = mv->forced && !mv->others && mv->processes == 1 && mv->due == 1 &&
		     is_first(mv->to, w->pid, w->began) && reads(m, mv, w->pid, mv->process[0]);
	enum sends how;

	/* Who sees that the stream has ended sees this. */
	MUST(mv->to->index != m->leader);
	how = !sends ? SENDS_NOT : cpus_several() ? SENDS_SOON : SENDS;
	__atomic_store_n(&mv->to->brief->sends, how, __ATOMIC_RELAXED);
}

void wire_rights(const struct move *mv)
{
	if (wire_sends(mv->to) && !rights_cover(mv->to->wire.pid, mv->process[0]))
		wire_refuse(mv->to);
}

/* Who waits for what comes hears that there is nobody any more. */
void wire_refuse(struct version *v)
{
	wire_end(v);
	wire_drop(v);
}

void wire_end(struct version *v)
{
	__atomic_store_n(&v->brief->sends, SENDS_NOT, __ATOMIC_RELAXED);
}

bool wire_sends(const struct version *v)
{
	return v->brief->sends && v->wire.pid;
}

int wire_take(struct version *v, struct request *r)
{
	MUST(wire_sends(v));
	*r = (struct request){ .kind = REQ_TAKE, .slot = v->wire.slot, .pid = v->wire.pid,
			       .tid = v->wire.pid };
	v->wire.pid = 0;
	return v->wire.fd;
}
