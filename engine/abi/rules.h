/*
 * The contract between compiled rules and the host that runs them.
 *
 * `rulec build` turns a rules file into one object: position independent, with
 * no relocation and no undefined symbol, so that the inside can map it and call
 * it.  Its ELF entry, mve_rules(), fills a struct rules_object; everything else
 * is reached from there.  The object asks the host for events and for bytes of
 * arguments through struct rules_host, and for nothing else.
 *
 * This header is also pasted into the generated C, so it may include only what
 * a freestanding compiler has.  C in rules sees `struct view` and the view_*
 * functions below: every access through them is bounded.
 *
 * Who writes: the host owns rules_run and rules_state; the object writes the
 * fields that say so.  Nothing here is shared between threads.
 *
 * Raise RULES_VERSION whenever a structure changes its layout, a flag changes
 * its meaning, or a function of rules_object another contract: an object of
 * another version is refused by rules_attach(), and mve compiles it anew.
 */
#ifndef MVE_ABI_RULES_H
#define MVE_ABI_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RULES_MAGIC	0x3165766d	/* "mve1" */
#define RULES_VERSION	5

/*
 * Limit (rules): rules of one file. Beyond: rulec refuses it.
 */
#define RULES_MAX	4096
/*
 * Limit (rules): calls on the left of a rule. Beyond: rulec refuses it.
 */
#define RULES_STEPS	64
/*
 * Limit (rules): calls on the right of a rule. Beyond: rulec refuses it.
 */
#define RULES_OUTS	64
#define RULES_VIEWS	32	/* views that C binds in one rule */
#define RULES_NUMS	16	/* numbers kept from one call to a later one */
#define RULES_ARGS	6
#define RULES_SAID_NO	64	/* guards that are remembered to have said no */
#define RULES_WITHIN_MS	100	/* how long a left side may stay undecided */

/* Memory that may be looked at; through the view_* functions only. */
struct view {
	const uint8_t *at_;
	uint32_t len_;
	uint32_t pad_;
};

/* A call of the leader, from its event, or of the follower, as it makes it. */
struct rules_call {
	uint32_t nr;
	uint32_t pad;
	uint64_t args[RULES_ARGS];
	int64_t ret;		/* the leader's; of a follower's call: 0 */
	void *host;		/* the host's own: where the bytes are */
};

/*
 * What a host offers.  peek(arg, i) is the i-th event from the cursor that
 * belongs to this scope, or NULL if it is not there yet; the call, and bytes
 * got of it, stay at their address until the cursor moves past it.  bytes() is
 * the memory behind argument i of such a call, or of the follower's own call:
 * readable to its end; empty when the argument is no address, null, or bad.
 * For iovec and msghdr it is the concatenated content.
 */
struct rules_host {
	const struct rules_call *(*peek)(void *arg, unsigned i);
	struct view (*bytes)(void *arg, const struct rules_call *call, unsigned i);
};

/* A thread's place in the rules (@process: a process').  All zero at first. */
struct rules_state {
	uint16_t active;	/* the rule whose right side is being followed, + 1 */
	uint16_t out;		/* the call of it that comes next */
	uint16_t ran;		/* a call is being executed: its out, + 1 */
	uint8_t begun;		/* the start-up prefix is over */
	uint8_t pad[9];
	struct view view[RULES_VIEWS];	/* written by guards */
	int64_t num[RULES_NUMS];	/* written by the object */
};

/* What an action made of a call; only what `edited` names is valid. */
struct rules_edit {
	uint8_t edited;		/* bit i: argument i */
	uint8_t ret_set;
	uint8_t pad[6];
	int64_t ret;
	uint64_t args[RULES_ARGS];
	struct view buf[RULES_ARGS];
};

enum rules_fault {
	RULES_OK,
	RULES_NO_ROOM,		/* a built buffer is longer than the host's room */
	RULES_TOO_LONG,		/* an edited buffer is longer than the follower's */
	RULES_WRONG_EVENT,	/* the object asked for an event it did not peek */
};

/* Why a rule was not taken: run.why, for reports and `rulec explain`. */
enum rules_why {
	RULES_WHY_NONE,
	RULES_WHY_ARG,		/* an argument's pattern */
	RULES_WHY_GUARD,	/* a guard said no */
	RULES_WHY_CALL,		/* it is not the call that the rule has there */
	RULES_WHY_MORE,		/* the leader has not made that call yet */
	RULES_WHY_FOREIGN,	/* its descriptor is none that a rule's call opened */
	RULES_WHY_DIFFERS,	/* the call, as the rule makes it, is not the follower's */
};

/* One question to the object, and what it needs to answer it. */
struct rules_run {
	const struct rules_host *host;
	void *arg;
	struct rules_state *state;
	const uint32_t *on;		/* a bit for each rule: may it be used */
	const struct rules_call *call;	/* the follower's */
	uint8_t *room;			/* for buffers that actions build */
	uint32_t room_size;
	uint32_t room_used;
	uint32_t build_start;
	uint8_t scope;			/* enum rules_scope */
	uint8_t expired;		/* waited long enough: decide with what is there */
	uint8_t composed;		/* @then: events are seen as edited */
	uint8_t why;			/* enum rules_why */
	uint8_t why_step;		/* of the left, or 0x80 + out of the right */
	uint8_t why_arg;
	uint16_t waits;			/* the undecided rule, with RULES_WAIT */
	uint16_t rule;			/* being tried: where a fault happened ... */
	uint16_t fault;			/* enum rules_fault */
	uint32_t line;			/* ... and the guard's or action's line */
	uint32_t file;			/* its file, in the object's text */
	uint32_t why_want;		/* what the rule has there: in object.wanted */
	uint32_t events;		/* how many of ev are valid */
	uint16_t *said_no;		/* while a long list is tried: guards, + 1 */
	const struct rules_call *ev[RULES_STEPS];
	struct rules_edit edit;
};

enum rules_scope { RULES_THREAD, RULES_PROCESS, RULES_SCOPES };

/* What the rules of a scope want of a call: rules_object.wants[scope][nr]. */
enum rules_wants {
	RULES_WANTS_EVENT = 1,	/* a left side begins with it */
	RULES_WANTS_CALL = 2,	/* a right side names it */
	RULES_WANTS_FIRST = 4,	/* a `begin` or `nothing` rule begins with it */
	RULES_WANTS_LATER = 8,	/* a left side has it, not first */
	RULES_WANTS_NOW = 16,	/* a `@first nothing` rule begins with it */
};

enum rules_pick {
	RULES_LEFT,		/* by the events at the cursor */
	RULES_NOTHING,		/* by the follower's unexpected call */
	RULES_BEGIN,		/* by the follower's first calls */
	RULES_FIRST,		/* by the follower's call, whatever the leader's next is */
};
#define RULES_NONE	(-1)
#define RULES_WAIT	(-2)

enum rules_out_kind {
	RULES_OUT_MATCH,	/* answered from an event */
	RULES_OUT_RUN,		/* executed by the follower itself */
	RULES_OUT_ANSWER,	/* @discard: answered, nothing happens */
};

enum rules_out_flags {
	RULES_OUT_STAR = 1,	/* zero or more */
	RULES_OUT_ACTION = 2,	/* act() has something to do */
	RULES_OUT_PRIVATE = 4,	/* only on a descriptor that a rule's call opened */
	RULES_OUT_OPENS = 8,	/* the result is such a descriptor */
	RULES_OUT_READS = 16,	/* an open: contained unless it only reads */
};

#define RULES_ANY_CALL	0xffff

struct rules_out {
	uint16_t nr;		/* RULES_ANY_CALL: fits() knows */
	uint8_t kind;		/* enum rules_out_kind */
	uint8_t flags;		/* enum rules_out_flags */
	uint8_t step;		/* MATCH: the event */
	uint8_t compare;	/* MATCH: bit i: argument i is compared as without rules */
	uint16_t pad;
	uint32_t line;
};

enum rules_row_flags {
	RULES_ROW_BEGIN = 1, RULES_ROW_NOTHING = 2, RULES_ROW_PROCESS = 4,
	RULES_ROW_OLD = 8, RULES_ROW_NEW = 16, RULES_ROW_DISCARD = 32,
	RULES_ROW_FIRST = 64,
	RULES_ROW_TELLS = 128,	/* outs is 0, but act(first_out) is told of dropped calls */
	RULES_ROW_APART = 256,	/* connections have a sequence of calls each */
};

struct rules_row {
	uint32_t name;		/* into text */
	uint32_t file;
	uint32_t leader;	/* version, or 0: any */
	uint32_t follower;
	uint32_t line;
	uint32_t first_out;	/* into outs */
	uint16_t outs;
	uint16_t steps;
	uint16_t within_ms;
	uint16_t within_events;
	uint16_t flags;		/* enum rules_row_flags */
	uint16_t then;		/* a rule + 1: it sees this one's edits */
};

enum rules_object_flags {
	RULES_CLOCKS = 1,	/* a rule names a clock call: show soft events */
	RULES_HAS_PROCESS = 2,	/* some rules are @process */
	RULES_HAS_APART = 4,	/* connections have a sequence of calls each */
};

/*
 * What an object offers; mve_rules() fills it.  Every pointer leads into the
 * object.  pick() answers a rule's number, RULES_NONE or RULES_WAIT; left() says
 * whether the first n calls of a rule's left side hold, fits() whether the
 * follower's call is an out's, and act() runs an out's action, writing edit.
 */
struct rules_object {
	uint32_t magic;
	uint32_t version;
	uint32_t flags;
	uint32_t rules;
	uint32_t steps_max;	/* the longest left side */
	uint32_t pad;
	const struct rules_row *rows;
	const struct rules_out *outs;
	const char *text;
	const char *wanted;	/* calls and patterns as written, for why_want */
	const uint8_t *wants[RULES_SCOPES];
	uint32_t wants_size;	/* calls that wants[] knows */
	uint32_t pad2;
	int (*pick)(struct rules_run *run, enum rules_pick which);
	bool (*left)(struct rules_run *run, unsigned rule, unsigned n);
	bool (*fits)(struct rules_run *run, unsigned out);
	void (*act)(struct rules_run *run, unsigned out);
};

typedef int rules_entry(struct rules_object *object, uint32_t version);

_Static_assert(sizeof(struct view) == 16, "a view is two words");
_Static_assert(sizeof(struct rules_call) == 72, "layout of a call");
_Static_assert(sizeof(struct rules_out) == 12, "layout of an out");
_Static_assert(sizeof(struct rules_row) == 36, "layout of a row");

/* --- what C in rules may call: bounded looks at memory --------------------- */

/* What has a loop, or checks: rulec makes one function of it, not one for each use. */
#ifndef RULES_FAR
#define RULES_FAR	static inline
#endif

static inline struct view view_of(const void *at, size_t len)
{
	return (struct view){ (const uint8_t *)at, (uint32_t)len, 0 };
}

static inline struct view view_none(void)
{
	return (struct view){ 0, 0, 0 };
}

static inline size_t view_len(struct view v)
{
	return v.len_;
}

/* The i-th byte; -1 outside. */
static inline int view_at(struct view v, size_t i)
{
	return i < v.len_ ? v.at_[i] : -1;
}

/* At most n bytes from `from` on; empty if there are none. */
RULES_FAR struct view view_sub(struct view v, size_t from, size_t n)
{
	if (from > v.len_)
		from = v.len_;
	if (n > v.len_ - from)
		n = v.len_ - from;
	return view_of(v.at_ + from, n);
}

static inline struct view view_from(struct view v, size_t from)
{
	return view_sub(v, from, v.len_);
}

RULES_FAR bool view_same(struct view a, struct view b)
{
	if (a.len_ != b.len_)
		return false;
	for (size_t i = 0; i < a.len_; i++)
		if (a.at_[i] != b.at_[i])
			return false;
	return true;
}

RULES_FAR bool view_begins_with(struct view v, struct view head)
{
	return v.len_ >= head.len_ && view_same(view_sub(v, 0, head.len_), head);
}

static inline size_t view_text_len(const char *text)
{
	size_t n = 0;

	if (__builtin_constant_p(__builtin_strlen(text)))
		return __builtin_strlen(text);
	while (text[n])
		n++;
	return n;
}

static inline struct view view_text(const char *text)
{
	return view_of(text, view_text_len(text));
}

static inline bool view_is(struct view v, const char *text)
{
	return view_same(v, view_text(text));
}

static inline bool view_begins(struct view v, const char *text)
{
	return view_begins_with(v, view_text(text));
}

/* Where a byte is first found; the length if it is not there. */
RULES_FAR size_t view_find(struct view v, uint8_t byte)
{
	size_t i = 0;

	while (i < v.len_ && v.at_[i] != byte)
		i++;
	return i;
}

/* Takes the bytes before `stop` off the front, and `stop` too. */
RULES_FAR struct view view_cut(struct view *v, uint8_t stop)
{
	size_t n = view_find(*v, stop);
	struct view head = view_sub(*v, 0, n);

	*v = view_from(*v, n + 1);
	return head;
}

/* Without white space (and zero bytes) at both ends. */
RULES_FAR struct view view_trim(struct view v)
{
	size_t from = 0, to = v.len_;

	while (from < to && v.at_[from] <= ' ')
		from++;
	while (to > from && v.at_[to - 1] <= ' ')
		to--;
	return view_sub(v, from, to - from);
}

/* The decimal number at the front; 0 if there is none, no overflow. */
RULES_FAR int64_t view_number(struct view v)
{
	bool minus = view_at(v, 0) == '-';
	int64_t n = 0;

	for (size_t i = minus; i < v.len_; i++) {
		if (v.at_[i] < '0' || v.at_[i] > '9' || n > INT64_MAX / 10 - 10)
			break;
		n = n * 10 + (v.at_[i] - '0');
	}
	return minus ? -n : n;
}

/* --- building buffers: what `$(s) = "..."` is turned into ------------------ */

static inline void rules_build(struct rules_run *run)
{
	run->build_start = run->room_used;
}

RULES_FAR void rules_add(struct rules_run *run, struct view v)
{
	if (v.len_ > run->room_size - run->room_used) {
		run->fault = RULES_NO_ROOM;
		return;
	}
	for (uint32_t i = 0; i < v.len_; i++)
		run->room[run->room_used + i] = v.at_[i];
	run->room_used += v.len_;
}

RULES_FAR void rules_add_number(struct rules_run *run, int64_t n)
{
	uint64_t left = n < 0 ? 0 - (uint64_t)n : (uint64_t)n;
	uint8_t digits[24];
	unsigned at = sizeof(digits);

	do {
		digits[--at] = (uint8_t)('0' + left % 10);
		left /= 10;
	} while (left);
	if (n < 0)
		digits[--at] = '-';
	rules_add(run, view_of(digits + at, sizeof(digits) - at));
}

static inline struct view rules_built(struct rules_run *run)
{
	return view_of(run->room + run->build_start, run->room_used - run->build_start);
}

/* --- what generated code uses ---------------------------------------------- */

static inline struct view rules_bytes(struct rules_run *run, unsigned step, unsigned i)
{
	if (run->composed && run->edit.edited & 1u << i)
		return run->edit.buf[i];
	return run->host->bytes(run->arg, run->ev[step], i);
}

static inline uint64_t rules_arg(struct rules_run *run, unsigned step, unsigned i)
{
	if (run->composed && run->edit.edited & 1u << i)
		return run->edit.args[i];
	return run->ev[step]->args[i];
}

static inline int64_t rules_ret(struct rules_run *run, unsigned step)
{
	return run->composed && run->edit.ret_set ? run->edit.ret : run->ev[step]->ret;
}

static inline struct view rules_own_bytes(struct rules_run *run, unsigned i)
{
	return run->host->bytes(run->arg, run->call, i);
}

/* Equal guards of many rules are run once, until one says yes. */
static inline bool rules_said_no(const struct rules_run *run, unsigned guard)
{
	return run->said_no && run->said_no[guard % RULES_SAID_NO] == guard + 1;
}

static inline bool rules_say_no(struct rules_run *run, unsigned guard)
{
	if (run->said_no)
		run->said_no[guard % RULES_SAID_NO] = (uint16_t)(guard + 1);
	return true;
}

/* Event i, if it is there. */
static inline bool rules_more(struct rules_run *run, unsigned i)
{
	if (i < run->events)
		return true;
	if (i >= RULES_STEPS)
		return false;
	run->ev[i] = run->host->peek(run->arg, i);
	if (!run->ev[i])
		return false;
	run->events = i + 1;
	return true;
}

static inline bool rules_on(const struct rules_run *run, unsigned rule)
{
	return run->on[rule / 32] >> rule % 32 & 1;
}

static inline bool rules_no(struct rules_run *run, uint8_t why, unsigned step, unsigned arg,
	unsigned want)
{
	run->why = why;
	run->why_want = want;
	run->why_step = (uint8_t)step;
	run->why_arg = (uint8_t)arg;
	return false;
}

static inline void rules_at(struct rules_run *run, unsigned file, unsigned line)
{
	run->file = file;
	run->line = line;
}

#endif
