/*
 * Seams: the places in a leader's stream where a request begins.  The user says
 * where (--mark): before certain calls, or where the program opens a path that
 * is there for this alone; such an open is answered here and never made.
 *
 * A seam is an event of its own, in nobody's way: followers pass over it and
 * count it.
 */
#include <asm/unistd.h>

#include "engine/inside/stream.h"

static const struct seams *seams(void)
{
	return &streams.conduct->seams;
}

bool seam_is_call(long nr)
{
	for (uint32_t i = 0; i < seams()->calls && i < SEAM_CALLS; i++)
		if (seams()->call[i] == nr)
			return true;
	return false;
}

bool seam_may_open(const struct call_desc *d)
{
	return seams()->path[0] && (d->nr == __NR_open || d->nr == __NR_openat);
}

bool seam_opened(struct thread *t, const struct walk *w)
{
	const char *path = seams()->path;
	uint64_t at;

	if (!path[0] || !w->desc || !seam_may_open(w->desc))
		return false;
	at = w->args[w->desc->nr == __NR_openat];
	for (uint32_t i = 0; i < sizeof(seams()->path); i++) {
		char c;

		if (target_in(&c, at + i, 1) || c != path[i])
			return false;
		if (!c)
			break;
	}
	t->answered = 1;
	return true;
}

void seam_pass(struct thread *t)
{
	t->slot->seams++;
	if (stream_followed(t))
		lead_note(t, EVENT_SEAM, t->slot->seams);
}
