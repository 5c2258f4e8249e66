/* What a version that fails does last: whether an event is no more than that. */
#include "engine/core/walk.h"
#include "engine/inside/actions/actions.h"
#include "engine/inside/crash/crash.h"
#include "engine/inside/fd/files.h"
#include "engine/inside/order/passable.h"
#include "engine/inside/record/words.h"

static bool is_file(const struct words *s, int64_t fd)
{
	return (fd >= 0 && fd <= 2) || file_known(fd) ||
	       (fd >= 0 && fd < OPENED_FDS && s->opened[fd / 64] >> fd % 64 & 1);
}

/* About a file that has a name. */
static bool is_of_file(struct words *s, const struct call_desc *d, const struct event *e)
{
	int path = call_path_arg(d);

	if (d->class != CLASS_EFFECT || path < 0 || path > 1 ||
	    (path && d->args[0].kind != KIND_DIRFD))
		return d->nargs && d->args[0].kind == KIND_FD && is_file(s, (int32_t)e->arg[0]);
	if (call_has(d, TRAIT_OPENS) && e->result >= 0 && e->result < OPENED_FDS)
		s->opened[e->result / 64] |= 1ull << e->result % 64;
	return true;
}

bool words_hold(struct words *s, const struct event *e)
{
	const struct call_desc *d;

	if (e->kind != EVENT_CALL)
		return event_aside(e) ||
		       (e->kind == EVENT_SIGNAL && crash_signal((int)e->result));
	if (event_is_elastic(e))
		return true;
	d = call_find(e->call);
	return d && (d->class == CLASS_BOTH || call_has(d, TRAIT_SIGNALS) || is_of_file(s, d, e));
}
