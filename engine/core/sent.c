/*
 * What a call sends in the memory that its answer comes to: sigprocmask(how, &s, &s),
 * readlink(p, p, n).  Behind the call the answer stands there, in the leader, and in a
 * follower as soon as one argument has its answer.  So it is kept from before the call,
 * and the walk takes it from there.
 *
 * Known from the row's directions alone.  Not looked at: what a vector or a message leads
 * to, and what an argument that is both sent and received sends: that is not told.
 */
#include "engine/core/must.h"
#include "engine/core/walk.h"

static bool is_sent(const struct arg_desc *a)
{
	return a->kind == KIND_PATH || a->kind == KIND_STR ||
	       (a->kind == KIND_MEM && a->dir == DIR_IN);
}

static bool is_received(const struct arg_desc *a)
{
	return a->kind == KIND_MEM && a->dir != DIR_IN;
}

bool step_may_alias(const struct call_desc *d)
{
	bool sent = false, received = false;

	for (unsigned i = 0; d && i < d->nargs; i++) {
		sent |= is_sent(&d->args[i]);
		received |= is_received(&d->args[i]);
	}
	return sent && received;
}

/* As much as the kernel may read or write there, before it has. */
static uint64_t reach(const struct walk *w, unsigned i)
{
	struct walk all = *w;
	uint64_t n;

	all.result = INT64_MAX;
	if (w->desc->args[i].kind != KIND_MEM)
		return STRING_MAX;
	n = w->desc->args[i].len_rule == LEN_RULE_SELF ? step_self(&all, i) :
	    step_length(&all, i);
	return n < LENGTH_MAX ? n : LENGTH_MAX;
}

static bool meets(const struct walk *w, unsigned in, unsigned out)
{
	uint64_t from = w->args[in], to = w->args[out];

	return from && to && (from < to ? to - from < reach(w, in) : from - to < reach(w, out));
}

static bool is_met(const struct walk *w, unsigned in)
{
	for (unsigned i = 0; i < w->desc->nargs; i++)
		if (is_received(&w->desc->args[i]) && meets(w, in, i))
			return true;
	return false;
}

bool step_aliases(const struct walk *w)
{
	for (unsigned i = 0; i < w->desc->nargs; i++)
		if (is_sent(&w->desc->args[i]) && is_met(w, i))
			return true;
	return false;
}

/* What can be read of it, page by page. */
static void part_keep(struct sent *s, const struct walk *w, unsigned i, uint64_t *used)
{
	uint64_t len = reach(w, i), room = SENT_MAX - *used, at = w->args[i], done = 0;

	if (w->desc->args[i].kind != KIND_MEM && room > STRING_MAX)
		len = STRING_MAX;
	if (len > room)
		return;		/* no call sends so much that may be well */
	while (done < len) {
		uint64_t n = PAGE_BYTES - (at + done) % PAGE_BYTES;

		n = n < len - done ? n : len - done;
		if (target_in(s->bytes + *used + done, at + done, n))
			break;
		done += n;
	}
	if (done < len && w->desc->args[i].kind == KIND_MEM)
		return;		/* the call fails, and writes nothing */
	for (uint64_t n = done; n < len; n++)
		s->bytes[*used + n] = 0;
	s->args[i] = (uint64_t)(s->bytes + *used);
	*used += (len + 7) & ~7ull;
	MUST(*used <= SENT_MAX + 7);
}

void step_keep(struct walk *w, struct sent *s)
{
	uint64_t used = 0;

	for (unsigned i = 0; i < CALL_ARGS; i++)
		s->args[i] = w->args[i];
	for (unsigned i = 0; i < w->desc->nargs; i++)
		if (is_sent(&w->desc->args[i]) && is_met(w, i))
			part_keep(s, w, i, &used);
	w->args = s->args;
}
