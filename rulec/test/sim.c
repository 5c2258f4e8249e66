/*
 * The follower of `rulec test`: asks the rules as the engine does, and matches
 * by default as simply as can be: the same call, the same numbers, the same
 * content.  It is a second host of engine/core/rules.c, so what a test shows is
 * what the inside will do.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rulec/test/sim.h"

/* --- connections apart: each has a sequence of its own ----------------------- */

/* The connection that a call is about, or -1. */
static int64_t connection_of(const struct sim *sim, const struct sim_call *call)
{
	unsigned arg = call->row && !strcmp(call->row->name, "epoll_ctl") ? 2 : 0;
	uint64_t fd = call->call.args[arg];

	if (!sim->rules.apart || !call->row || arg >= call->row->desc.nargs ||
	    call->row->desc.args[arg].kind != KIND_FD || fd >= sizeof(sim->connection))
		return -1;
	return sim->connection[fd] ? (int64_t)fd : -1;
}

/* Where the i-th event stands that the follower's call may meet. */
static unsigned event_at(const struct sim *sim, unsigned i)
{
	unsigned at = sim->cursor;

	for (; at < sim->events->n; at++)
		if (!sim->taken[at] && connection_of(sim, &sim->events->at[at]) == sim->of &&
		    !i--)
			break;
	return at;
}

static void connection_note(struct sim *sim, const struct sim_call *event)
{
	bool accepts = call_has(&event->row->desc, TRAIT_ACCEPTS);
	uint64_t fd = accepts ? (uint64_t)event->call.ret : event->call.args[0];

	if (fd < sizeof(sim->connection) && (accepts || !strcmp(event->row->name, "close")))
		sim->connection[fd] = accepts;
}

static void events_take(struct sim *sim, unsigned n)
{
	for (; n && event_at(sim, 0) < sim->events->n; n--) {
		unsigned at = event_at(sim, 0);

		sim->taken[at] = true;
		connection_note(sim, &sim->events->at[at]);
	}
	while (sim->cursor < sim->events->n && sim->taken[sim->cursor])
		sim->cursor++;
}

static const struct rules_call *peek(void *arg, unsigned i)
{
	struct sim *sim = arg;
	unsigned at = event_at(sim, i);

	return at < sim->events->n ? &sim->events->at[at].call : NULL;
}

static struct view bytes(void *arg, const struct rules_call *call, unsigned i)
{
	const struct sim_call *c = call->host;

	(void)arg;
	return c && i < RULES_ARGS ? c->buf[i] : view_none();
}

static const struct rules_host host = { peek, bytes };

bool sim_open(struct sim *sim, struct unit *u)
{
	char path[] = "/tmp/rulec-XXXXXX.so";
	int fd = mkstemps(path, 3);
	void *object;
	rules_entry *entry;

	memset(sim, 0, sizeof(*sim));
	sim->u = u;
	if (fd < 0)
		return false;
	close(fd);
	if (!build_object(u, path)) {
		unlink(path);
		return false;
	}
	object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	unlink(path);
	entry = object ? (rules_entry *)dlsym(object, "mve_rules") : NULL;
	if (!entry || rules_attach(&sim->rules, entry)) {
		fprintf(stderr, "rulec: cannot load the object: %s\n", object ? "not one of ours" :
			dlerror());
		return false;
	}
	return true;
}

void sim_begin(struct sim *sim, const struct sim_calls *events, enum rules_stage stage)
{
	memset(sim->state, 0, sizeof(sim->state));
	memset(sim->private_fd, 0, sizeof(sim->private_fd));
	sim->events = events;
	sim->cursor = 0;
	sim->of = -1;
	memset(sim->taken, 0, sizeof(sim->taken));
	memset(sim->connection, 0, sizeof(sim->connection));
	for (unsigned i = 0; i < events->n; i++)
		((struct sim_calls *)events)->at[i].call.host = (void *)&events->at[i];
	rules_choose(&sim->rules, stage, NULL, NULL);
}

/* --- comparing ------------------------------------------------------------- */

static struct view edited_bytes(const struct sim *sim, const struct sim_call *event, unsigned i)
{
	return sim->answer.edit.edited & 1u << i ? sim->answer.edit.buf[i] : event->buf[i];
}

static bool same_arg(const struct sim *sim, const struct sim_call *event,
	const struct sim_call *call, unsigned i)
{
	const struct arg_desc *arg = &call->row->desc.args[i];
	bool edited = sim->answer.edit.edited & 1u << i;

	if (call->any & 1u << i || (event->any & 1u << i && !edited))
		return true;
	if (arg_is_memory(arg) && !(arg->dir & DIR_IN))
		return !call->call.args[i] == !event->call.args[i];
	if (arg_is_memory(arg))
		return view_same(edited_bytes(sim, event, i), call->buf[i]);
	return (edited ? sim->answer.edit.args[i] : event->call.args[i]) == call->call.args[i];
}

static bool same_call(const struct sim *sim, const struct sim_call *event,
	const struct sim_call *call, unsigned mask)
{
	if (event->call.nr != call->call.nr)
		return false;
	for (unsigned i = 0; i < call->row->desc.nargs; i++)
		if (mask & 1u << i && !same_arg(sim, event, call, i))
			return false;
	return true;
}

/* --- serving --------------------------------------------------------------- */

static void served(struct sim_result *r, enum sim_how how, int64_t ret)
{
	r->served = true;
	r->how = how;
	r->ret = ret;
}

static bool not_served(struct sim_result *r, const char *why)
{
	r->served = false;
	r->why = why;
	return true;
}

static bool by_event(struct sim *sim, struct sim_call *call, struct sim_result *r,
	unsigned index, unsigned mask, enum sim_how how)
{
	const struct sim_call *event = &sim->events->at[event_at(sim, index)];
	const struct rules_edit *edit = &sim->answer.edit;

	if (!same_call(sim, event, call, mask))
		return not_served(r, "the arguments or the content differ from the leader's");
	served(r, how, edit->ret_set ? edit->ret : event->call.ret);
	for (unsigned i = 0; i < call->row->desc.nargs; i++) {
		const struct arg_desc *arg = &call->row->desc.args[i];

		r->buf[i] = edited_bytes(sim, event, i);
		if (arg->len_rule == LEN_RULE_RESULT && edit->edited & 1u << i &&
		    edit->buf[i].len_ > call->call.args[arg->len_arg] * layout_size(arg->what))
			return not_served(r, rules_fault_text(RULES_TOO_LONG));
	}
	return true;
}

static bool is_private(const struct sim *sim, const struct sim_call *call)
{
	return call->call.args[0] < sizeof(sim->private_fd) &&
		sim->private_fd[call->call.args[0]];
}

static bool by_running(struct sim *sim, struct sim_call *call, struct sim_result *r)
{
	int64_t ret = call->ran ? call->ran_ret : call->call.ret;

	if (sim->answer.how & RULES_OUT_PRIVATE && !is_private(sim, call))
		return not_served(r, "the descriptor is none that a rule's call opened");
	if (sim->answer.how & RULES_OUT_OPENS && ret >= 0 &&
	    (size_t)ret < sizeof(sim->private_fd))
		sim->private_fd[ret] = 1;
	served(r, SIM_RUN, rules_ran(&sim->rules, &sim->run, &sim->answer, ret));
	return true;
}

static bool by_answer(struct sim *sim, struct sim_result *r)
{
	served(r, SIM_ANSWER, sim->answer.edit.ret);
	for (unsigned i = 0; i < RULES_ARGS; i++)
		if (sim->answer.edit.edited & 1u << i)
			r->buf[i] = sim->answer.edit.buf[i];
	return true;
}

/* No rule has a say: is it the leader's next call? */
static bool by_default(struct sim *sim, struct sim_call *call, struct sim_result *r);

/* Acts on a verdict; false: ask again. */
static bool act(struct sim *sim, struct sim_call *call, struct sim_result *r,
	enum rules_verdict verdict)
{
	r->rule = verdict == RULES_DEFAULT ? -1 : sim->answer.rule;
	switch (verdict) {
	case RULES_DEFAULT:
		return by_default(sim, call, r);
	case RULES_MATCH:
		by_event(sim, call, r, sim->answer.event, sim->answer.compare, SIM_MATCH);
		break;
	case RULES_RUN:
		by_running(sim, call, r);
		break;
	case RULES_ANSWER:
		by_answer(sim, r);
		break;
	case RULES_SKIP:
		events_take(sim, sim->answer.skip);
		return false;
	case RULES_HOLD:
		r->held = true;
		sim->run.expired = 1;
		return sim->cursor == sim->events->n && by_default(sim, call, r);
	case RULES_DIVERGE:
		return not_served(r, "a rule is being followed, and this is not its next call");
	case RULES_ERROR:
		return not_served(r, rules_fault_text(sim->answer.fault));
	}
	events_take(sim, sim->answer.skip);
	return true;
}

static bool by_default(struct sim *sim, struct sim_call *call, struct sim_result *r)
{
	enum rules_verdict verdict;

	if (call->row->desc.class == CLASS_LOCAL) {
		served(r, SIM_DEFAULT, call->call.ret);
		return true;
	}
	if (peek(sim, 0) && peek(sim, 0)->nr == call->call.nr) {
		by_event(sim, call, r, 0, 0x3f, SIM_DEFAULT);
		if (r->served) {
			events_take(sim, 1);
			return true;
		}
	}
	sim->run.scope = RULES_THREAD;
	sim->run.state = &sim->state[RULES_THREAD];
	verdict = rules_unexpected(&sim->rules, &sim->run, &sim->answer);
	if (verdict != RULES_DEFAULT)
		return act(sim, call, r, verdict);
	if (r->why)
		return true;
	return not_served(r, sim->cursor < sim->events->n ?
		"it is not the leader's next call" : "the leader made no more calls");
}

/* It is for what a rule's call opened, and this is not: then it is not taken. */
static bool is_foreign(struct sim *sim)
{
	if (!(sim->answer.how & RULES_OUT_PRIVATE) || is_private(sim, sim->run.call->host))
		return false;
	sim->run.state->active = sim->run.state->out = sim->run.state->ran = 0;
	return true;
}

static enum rules_verdict ask_scope(struct sim *sim, enum rules_scope scope)
{
	enum rules_verdict verdict;

	sim->run.scope = (uint8_t)scope;
	sim->run.state = &sim->state[scope];
	verdict = rules_first(&sim->rules, &sim->run, &sim->answer);
	if (verdict == RULES_RUN && is_foreign(sim))
		verdict = RULES_DEFAULT;
	return verdict != RULES_DEFAULT ? verdict :
		rules_next(&sim->rules, &sim->run, &sim->answer);
}

static enum rules_verdict ask(struct sim *sim)
{
	enum rules_verdict verdict = RULES_DEFAULT;

	if (sim->rules.object.flags & RULES_HAS_PROCESS)
		verdict = ask_scope(sim, RULES_PROCESS);
	if (verdict == RULES_DEFAULT || (verdict == RULES_HOLD && sim->run.events == 0))
		verdict = ask_scope(sim, RULES_THREAD);
	return verdict;
}

void sim_ready(struct sim *sim, struct sim_call *call)
{
	call->call.host = call;
	sim->run = (struct rules_run){ .host = &host, .arg = sim, .call = &call->call,
		.room = sim->room, .room_size = SIM_ROOM,
		.on = sim->rules.on, .state = &sim->state[RULES_THREAD] };
}

void sim_step(struct sim *sim, struct sim_call *call, struct sim_result *result)
{
	*result = (struct sim_result){ .rule = -1 };
	sim_ready(sim, call);
	sim->of = connection_of(sim, call);
	while (!act(sim, call, result, ask(sim)))
		;
}

/* A call that nobody makes: only rules that drop events can do something. */
bool sim_finish(struct sim *sim)
{
	struct sim_call none = { .call.nr = RULES_ANY_CALL };

	sim_ready(sim, &none);
	sim->run.expired = 1;
	while (sim->cursor < sim->events->n) {
		sim->of = connection_of(sim, &sim->events->at[sim->cursor]);
		if (ask(sim) != RULES_SKIP)
			break;
		events_take(sim, sim->answer.skip);
	}
	return sim->cursor >= sim->events->n || sim->events->open;
}

const char *sim_how_text(enum sim_how how)
{
	static const char *const texts[] = { "somehow", "by default", "by a match", "by running it",
		"by an answer" };

	return texts[how];
}
