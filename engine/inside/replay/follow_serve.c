/*
 * What a rule says is done: a match with another content, a call of the follower's
 * own, an answer without a call, events that are passed over (engine/core/rules.h
 * has what each verdict asks of its host).
 *
 * A call that a rule makes the follower run is the follower's alone: descriptors
 * that it opens get numbers at the upper end of what the limit allows, where the
 * leader's do not come; an open that would write gets a file of nobody's.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/memfd.h>

#include "engine/core/ring.h"
#include "engine/core/rules.h"
#include "engine/core/walk.h"
#include "engine/inside/calls/clock.h"
#include "engine/inside/fd/files.h"
#include "engine/inside/fd/follow_epoll.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/order/wait.h"
#include "engine/inside/replay/answer.h"
#include "engine/inside/replay/diverge.h"
#include "engine/inside/replay/follow.h"
#include "engine/inside/replay/follow_mmap.h"
#include "engine/inside/replay/follow_serve.h"
#include "engine/inside/replay/own_query.h"
#include "engine/inside/rules/follow_rules.h"
#include "engine/inside/rules/opened.h"
#include "engine/inside/rules/rules_object.h"
#include "engine/inside/rules/rules_sight.h"

#define CHUNK		64	/* bytes compared at a time */

/* --- differences ---------------------------------------------------------------------- */

static enum step_result differs(struct thread *t, const struct mismatch *m)
{
	struct rules_thread *rt = t->rules;
	unsigned rule = rt->answer.rule;
	long reply;

	rt->state.active = (uint16_t)(rule + 1);	/* for the note */
	rt->differs = m->what != DIFFERS_CALL;
	rt->mismatch = *m;
	reply = follow_diverged(t, rt->walk, rt->call.nr, m->what, m);
	rt->differs = 0;
	rules_forget(t);
	if (reply == ANSWER_IGNORE && reader_peek(&t->reader))
		follow_take(t);
	else if (reply != ANSWER_RETRY)
		OWN1(__NR_exit_group, 1);
	return STEP_AGAIN;
}

static enum step_result other_call(struct thread *t)
{
	return differs(t, &(struct mismatch){ DIFFERS_CALL, 0, 0 });
}

/* --- memory with another content ------------------------------------------------------ */

/* Up to len bytes to where the argument wants them; what did not fit. */
static uint64_t spans_write(uint64_t spans, uint64_t n, struct view v, bool dry)
{
	uint64_t left = v.len_;

	for (; n && left; n--, spans += sizeof(struct span)) {
		struct span s;
		uint64_t part;

		if (target_in(&s, spans, sizeof(s)))
			break;
		part = s.len < left ? s.len : left;
		if (!dry)
			target_out(s.at, v.at_ + (v.len_ - left), part);
		left -= part;
	}
	return left;
}

static uint64_t room_of(const struct walk *w, unsigned i)
{
	const struct arg_desc *a = &w->desc->args[i];
	struct walk all = *w;

	all.result = INT64_MAX;
	if (a->len_rule == LEN_RULE_RESULT)
		return w->args[a->len_arg] * layout_size(a->what);
	return step_length(&all, i);
}

/* Writes an edited argument; false: the program has not as much room. */
static bool edit_write(const struct walk *w, unsigned i, struct view v)
{
	uint64_t at = w->args[i], n = w->args[w->desc->args[i].len_arg];
	struct message m;

	switch (w->desc->args[i].what) {
	case LAYOUT_iovec:
		return !spans_write(at, n, v, true) && !spans_write(at, n, v, false);
	case LAYOUT_msghdr:
		return !target_in(&m, at, sizeof(m)) && !spans_write(m.iov, m.iov_n, v, true) &&
		       !spans_write(m.iov, m.iov_n, v, false);
	default:
		if (v.len_ > room_of(w, i))
			return false;
		if (at)
			target_out(at, v.at_, v.len_);
		return true;
	}
}

static bool same_views(struct view a, struct view b, struct mismatch *m, unsigned arg)
{
	uint32_t n = a.len_ < b.len_ ? a.len_ : b.len_, i = 0;

	while (i < n && a.at_[i] == b.at_[i])
		i++;
	*m = (struct mismatch){ i < n ? DIFFERS_BYTES : DIFFERS_LENGTH, arg, i };
	return i == n && a.len_ == b.len_;
}

/* --- a match -------------------------------------------------------------------------- */

static bool is_value(const struct walk *w, unsigned i)
{
	return step_kind(w, i) == STEP_VALUE;
}

static bool is_memory(const struct walk *w, unsigned i)
{
	return w->desc->args[i].kind >= KIND_VALUES;
}

static bool values_same(struct thread *t, const struct walk *w, const struct held *h,
			struct mismatch *m)
{
	const struct rules_answer *a = &t->rules->answer;

	for (unsigned i = 0; i < w->desc->nargs; i++) {
		uint64_t theirs = a->edit.edited >> i & 1 ? a->edit.args[i] : h->call.args[i];

		if (!(a->compare >> i & 1) || !is_value(w, i) ||
		    step_same_value(&w->desc->args[i], w->args[i], theirs))
			continue;
		*m = (struct mismatch){ DIFFERS_VALUE, i, 0 };
		return false;
	}
	return true;
}

/* What the follower sends is the edited content. */
static bool sent_same(struct thread *t, const struct walk *w, struct mismatch *m)
{
	const struct rules_answer *a = &t->rules->answer;

	for (unsigned i = 0; i < w->desc->nargs; i++) {
		if (!(a->edit.edited & a->compare & 1u << i) || !is_memory(w, i) ||
		    !(w->desc->args[i].dir & DIR_IN))
			continue;
		if (!same_views(a->edit.buf[i], follow_own_bytes(t, i), m, i))
			return false;
	}
	return true;
}

/* And what it receives. */
static bool edits_write(struct thread *t, const struct walk *w)
{
	const struct rules_edit *edit = &t->rules->answer.edit;

	for (unsigned i = 0; i < w->desc->nargs; i++)
		if (edit->edited >> i & 1 && is_memory(w, i) &&
		    w->desc->args[i].dir & DIR_OUT && !edit_write(w, i, edit->buf[i]))
			return false;
	return true;
}

static enum step_result match(struct thread *t, struct walk *w, long nr, long *result)
{
	struct rules_thread *rt = t->rules;
	const struct rules_answer *a = &rt->answer;
	struct held *h = &rt->held[a->event];
	struct reader r = h->at, was = t->reader;	/* a copy: what is matched stays */
	struct mismatch m = { DIFFERS_CALL, 0, 0 };

	if (a->event >= rt->helds || h->call.nr != (uint32_t)nr || !w->desc)
		return other_call(t);
	w->result = h->call.ret;
	t->reader = h->at;
	follow_note_first(t, w, w->result);
	t->reader = was;
	if (!values_same(t, w, h, &m) || !sent_same(t, w, &m) ||
	    !match_memory_but(&r, w, true, a->compare, a->edit.edited, &m))
		return differs(t, &m);
	if (!edits_write(t, w))
		return rules_failed(t, rules_fault_text(RULES_TOO_LONG));
	if (a->edit.ret_set)
		w->result = a->edit.ret;
	*result = follow_told(t, w, nr, rules_drop(t, a->skip));
	return STEP_DONE;
}

/* --- a call of the follower's own ----------------------------------------------------- */

static bool opens_to_write(const struct walk *w)
{
	uint64_t flags = files_flags(w->desc, w->args);

	return (flags & O_ACCMODE) != O_RDONLY || flags & (O_CREAT | O_TRUNC | O_APPEND);
}

static long call_run(struct thread *t, const struct walk *w, long nr)
{
	if (t->rules->answer.how & RULES_OUT_READS && opens_to_write(w))
		return OWN2(__NR_memfd_create, "mve-rule", MFD_CLOEXEC);
	if (nr == __NR_mmap)
		return follow_mmap(t);
	return w->desc && w->desc->class == CLASS_LOCAL ? call_serve(t, nr) : own_query(t, nr);
}

static enum rules_verdict ask_ran(struct thread *t)
{
	struct rules_thread *rt = t->rules;

	rt->answer.edit.ret = rules_ran(&rt->rules, &rt->run, &rt->answer, rt->call.ret);
	return rt->answer.fault ? RULES_ERROR : RULES_RUN;
}

/* It is the first call that a rule adds: then it need not be this rule's. */
static bool adds_first(const struct rules_thread *rt)
{
	return !rt->rules.object.rows[rt->answer.rule].steps && !rt->answer.out;
}

static enum step_result not_taken(struct rules_thread *rt)
{
	rt->state.active = rt->state.out = rt->state.ran = 0;
	return STEP_NO_RULE;
}

static enum step_result run(struct thread *t, struct walk *w, long nr, long *result)
{
	struct rules_thread *rt = t->rules;
	const struct rules_state *before = &rt->before;
	const struct rules_answer *a = &rt->answer;
	uint8_t how = a->how;

	if (how & RULES_OUT_PRIVATE && !rules_opened(w->args[0])) {
		if (adds_first(rt))
			return not_taken(rt);
		rules_no(&rt->run, RULES_WHY_FOREIGN, 0x80u | a->out, 0, 0);
		return other_call(t);
	}
	*result = call_run(t, w, nr);
	if (*result == CALL_RESTART) {
		rt->state.active = before->active;
		rt->state.out = before->out;
		rt->state.ran = before->ran;
		return STEP_OWN;
	}
	if (call_has(w->desc, TRAIT_CLOSES) && *result >= 0)
		rules_opened_gone(w->args[0]);
	if (how & RULES_OUT_OPENS && *result >= 0)
		*result = rules_opened_move(*result);
	rt->call.ret = *result;
	if (rules_ask(t, ask_ran) == RULES_ERROR)
		return rules_failed(t, rules_fault_word(rt));
	*result = a->edit.ret;
	rules_drop(t, a->skip);
	return STEP_OWN;
}

/* --- an answer without a call --------------------------------------------------------- */

/*
 * A rule that answers a wait answers it at once, and it is made again: without an event of
 * the leader's between them nothing that the program does will end that.
 */
/*
 * Limit (rules): calls in a row that rules answer without an event of the leader's. Beyond:
 * the follower is dropped.
 */
#define ANSWERS_MAX	100000
#define ANSWERS_WORD	"it has answered 100000 calls without an event of the leader's"

static bool is_for_ever(struct thread *t)
{
	struct rules_thread *rt = t->rules;

	if (rt->answered_at != t->slot->taken)
		rt->answers = 0;
	rt->answered_at = t->slot->taken;
	return ++rt->answers > ANSWERS_MAX;
}

static enum step_result answer(struct thread *t, struct walk *w, long nr, long *result)
{
	const struct rules_answer *a = &t->rules->answer;

	if (is_for_ever(t))
		return rules_failed(t, ANSWERS_WORD);
	w->result = a->edit.ret;
	if (w->desc && !edits_write(t, w))
		return rules_failed(t, rules_fault_text(RULES_TOO_LONG));
	if (call_has(w->desc, TRAITS_GONE))
		follow_note_first(t, w, w->result);
	if (call_has(w->desc, TRAIT_REGISTERS) && a->edit.ret >= 0)
		epoll_own(w);
	*result = w->desc && w->desc->class != CLASS_BOTH
		? follow_told(t, w, nr, rules_drop(t, a->skip))
		: ((void)rules_drop(t, a->skip), a->edit.ret);
	t->answered = 1;
	return STEP_DONE;
}

static enum step_result serve(struct thread *t, struct walk *w, long nr, enum rules_verdict v,
			      long *result)
{
	struct rules_thread *rt = t->rules;

	switch (v) {
	case RULES_MATCH:
		return match(t, w, nr, result);
	case RULES_RUN:
		return run(t, w, nr, result);
	case RULES_ANSWER:
		return answer(t, w, nr, result);
	case RULES_SKIP:
		rules_drop(t, rt->answer.skip);
		return STEP_AGAIN;
	case RULES_DIVERGE:
		return other_call(t);
	case RULES_ERROR:
		return rules_failed(t, rules_fault_word(rt));
	default:
		return STEP_NO_RULE;
	}
}

enum step_result rules_meet(struct thread *t, struct walk *w, long nr, long *result)
{
	return serve(t, w, nr, rules_decide(t, w, nr), result);
}

enum step_result rules_meet_first(struct thread *t, struct walk *w, long nr, long *result)
{
	return serve(t, w, nr, rules_decide_first(t, w, nr), result);
}

enum step_result rules_meet_unexpected(struct thread *t, struct walk *w, long nr, long *result)
{
	return serve(t, w, nr, rules_decide_unexpected(t, w, nr), result);
}

enum step_result rules_meet_local(struct thread *t, struct walk *w, long nr, long *result)
{
	enum step_result step;

	if (!rules_name_call(t, w, nr))
		return STEP_NO_RULE;
	step = rules_meet_first(t, w, nr, result);
	if (step != STEP_NO_RULE)
		return step;
	do
		step = serve(t, w, nr, rules_decide_again(t, w, nr), result);
	while (step == STEP_AGAIN);
	return step != STEP_NO_RULE ? step : rules_meet_unexpected(t, w, nr, result);
}
