/*
 * The walk over a call's row: which memory belongs to a call, and what of it
 * goes into an event.  Writing (record.c) and reading (match.c) take the same
 * steps in the same order; the steps are here, in one place.
 */
#ifndef MVE_CORE_WALK_H
#define MVE_CORE_WALK_H

#include "engine/abi/table.h"
#include "engine/core/host.h"
#include "engine/core/inline.h"
#include "engine/core/ring.h"

#define SELF_WORDS	8	/* of an object's head: they say how large it is */

struct recipe;

/* A call as its walk sees it, on either side. */
struct walk {
	const struct call_desc *desc;
	const uint64_t *args;
	int64_t result;
	uint64_t room;		/* what an AT argument said before the call, or the host */
	const struct recipe *recipe;	/* or NULL */
};

/* How a row's argument is laid into the event. */
enum step {
	STEP_NONE,		/* nothing of it */
	STEP_VALUE,		/* into the header */
	STEP_TEXT,		/* up to its zero byte */
	STEP_BYTES,		/* step_length() bytes at the address */
	STEP_VECTOR,		/* the bytes behind an array of iovec */
	STEP_MESSAGE,		/* a msghdr: name, bytes, control */
	STEP_MESSAGES,		/* an array of mmsghdr */
	STEP_STRINGS,		/* argv */
	STEP_CONF,		/* an ifconf, and the bytes that it leads to */
};

/*
 * What of a row is the same at each call, found once: most calls need no walk
 * over their arguments.
 */
struct recipe {
	uint8_t values;		/* arguments that go into the header, as bits */
	uint8_t memory;		/* arguments that may need a section */
	uint8_t moved;		/* of those, bytes whose number the result says */
	uint8_t fixed;		/* and those of one element */
	uint8_t mode;		/* of values: only if a file may be created */
	uint8_t flags_arg;	/* which says that */
	int8_t room;		/* step_room_arg() */
	uint8_t known : 1;	/* 0: there is no recipe */
	uint8_t places : 3;	/* of the header, for `values`: for a mode always */
};

_Static_assert(sizeof(struct recipe) == 8, "one word");

struct recipe step_recipe(const struct call_desc *d);

enum step step_kind(const struct walk *w, unsigned arg);
/* The call was made, and may have written memory that the row knows nothing of. */
bool step_untold(const struct walk *w);
uint64_t step_length(const struct walk *w, unsigned arg);
/* Bytes of what an AT argument counts. */
unsigned step_room_unit(const struct walk *w, const struct arg_desc *a);
/* Of a SELF argument, whose object begins with `head`. */
uint64_t step_self_length(const struct walk *w, unsigned arg, const uint32_t head[SELF_WORDS]);
/* Of an argument among the recipe's `moved` or `fixed`; false: it has no section. */
static inline bool step_simple(const struct walk *w, unsigned arg, uint64_t *len);
/* The argument that holds an AT rule's room; -1: the call has none. */
int step_room_arg(const struct call_desc *d);
/* Values are compared in as many bits as the kernel looks at. */
bool step_same_value(const struct arg_desc *a, uint64_t x, uint64_t y);

/*
 * sent.c: a call whose answer comes to where it takes from what it sends.  What it sends is
 * kept from before it is made.
 */
#define SENT_MAX	4608	/* a path, and as much again as any structure has */

struct sent {
	uint64_t args[CALL_ARGS];
	uint8_t bytes[SENT_MAX];
};

/* Calls of the row may be such; this call is one, as far as is known before it is made. */
bool step_may_alias(const struct call_desc *d);
bool step_aliases(const struct walk *w);
/* The walk's arguments are those of *s now, as long as that is there. */
void step_keep(struct walk *w, struct sent *s);

struct span {
	uint64_t at, len;
};

struct message {
	uint64_t name;
	uint32_t name_len, pad0;
	uint64_t iov, iov_n;
	uint64_t control, control_len;
	uint32_t flags, pad1;
};

struct conf {
	uint32_t len, pad;
	uint64_t at;		/* 0: only the length is asked for */
};

#define MESSAGE_NAME	0xffff	/* no name, and no control data, are longer */
#define MESSAGE_CONTROL	0xfffff
#define MESSAGES_STRIDE	64	/* struct mmsghdr */
#define MESSAGE_MOVED	56	/* its msg_len: bytes sent or received */
_Static_assert(sizeof(struct message) == MESSAGE_MOVED, "the kernel's struct msghdr");
_Static_assert(MESSAGES_STRIDE == MESSAGE_MOVED + 8, "and its length behind it");
_Static_assert(sizeof(struct span) == 16 && sizeof(struct conf) == 16, "iovec, ifconf");
#define STRING_MAX	4096
#define SELF_MAX	4096	/* of an object that tells its own size */
#define TAIL_MAX	65536	/* and of one that counts what is behind its head */
#define STRINGS_MAX	512
#define STRINGS_END	0xffffffffu
_Static_assert(SENT_MAX >= STRING_MAX && STRING_MAX < STRINGS_END, "a path is kept whole");

/* What stands in a payload is not aligned. */
struct packed_u32 {
	uint32_t value;
} __attribute__((packed, may_alias));

/* record.c: fills the open event's values and payload. */
static inline void record_call(struct writer *w, const struct walk *call);
void record_memory(struct writer *w, const struct walk *call);
/* The section of one argument, whatever that is; and of so many bytes. */
void record_argument(struct writer *w, const struct walk *call, unsigned arg);
void record_section(struct writer *w, uint64_t from, uint64_t len);
void record_unknown(struct writer *w, const struct walk *call);

/* match.c */
struct mismatch {
	uint32_t what;		/* enum difference */
	uint32_t arg;
	uint64_t offset;	/* of the first byte that differs */
};

/* Compares the values; false: *m says which differs. */
bool match_values(const struct walk *call, const struct event *e, struct mismatch *m);
/*
 * Compares what the follower's call would send and writes what it receives.
 * With `answer` false only the comparing is done.
 */
bool match_memory(struct reader *r, const struct walk *call, bool answer, struct mismatch *m);

/* The same; only arguments in `compare` are compared, those in `leave` left alone. */
bool match_memory_but(struct reader *r, const struct walk *call, bool answer, uint8_t compare,
		      uint8_t leave, struct mismatch *m);

/* --- what is done for each call --------------------------------------------- */

#define LENGTH_MAX	(1ull << 31)
#define PAGE_BYTES	4096
#define LENGTH_FAILED	65536	/* a call that fails may have been given any length */
#define RESULT_TOO_BIG	(-7)	/* -E2BIG, -EINVAL, -ERANGE, -EOVERFLOW */
#define RESULT_INVALID	(-22)
#define RESULT_TOO_SMALL (-34)
#define RESULT_OVERFLOW	(-75)
#define OPEN_CREATES	020000100	/* O_CREAT and the bit of O_TMPFILE */

static inline uint64_t step_capped(uint64_t n, uint64_t size)
{
	return n > LENGTH_MAX / (size ? size : 1) ? LENGTH_MAX : n * size;
}

/*
 * The kernel answers in an argument's memory.  A call that fails does not, unless it says
 * how much room it would take, or which version of a structure it knows; that may stand
 * in what it was sent.
 */
static INLINE bool step_is_told(const struct walk *w, const struct arg_desc *a)
{
	if (a->dir == DIR_IN)
		return w->result != RESULT_TOO_BIG || a->len_rule != LEN_RULE_SELF;
	if (w->result >= 0)
		return true;
	if (a->len_rule != LEN_RULE_ONE && a->len_rule != LEN_RULE_SELF)
		return false;
	return w->result == RESULT_TOO_SMALL || w->result == RESULT_OVERFLOW ||
	       w->result == RESULT_TOO_BIG || w->result == RESULT_INVALID;
}

/* What of it can be read, page by page, and zeros for the rest; false: there was a rest. */
static inline bool step_fetch(void *to, uint64_t from, size_t len)
{
	uint8_t *out = to;

	if (!target_in(to, from, len))
		return true;
	while (len) {
		size_t page = PAGE_BYTES - from % PAGE_BYTES, n = page < len ? page : len;

		if (target_in(out, from, n))
			for (size_t i = 0; i < n; i++)
				out[i] = 0;
		out += n;
		from += n;
		len -= n;
	}
	return false;
}

/* It has a head that says how many others stand behind it. */
static inline bool step_counts(unsigned layout)
{
	return layout == LAYOUT_fiemap || layout == LAYOUT_dedupe;
}

/* Of an argument that tells its own size, as it is now. */
static inline uint64_t step_self(const struct walk *w, unsigned arg)
{
	uint32_t head[SELF_WORDS] = { 0 };
	uint64_t least = step_counts(w->desc->args[arg].what) ? layout_size(w->desc->args[arg].what)
							      : 2 * sizeof(head[0]);

	return target_in(head, w->args[arg], least) ? 0 : step_self_length(w, arg, head);
}

static INLINE bool step_simple_by(const struct walk *w, unsigned arg, bool fixed,
				       uint64_t *len)
{
	const struct arg_desc *a = &w->desc->args[arg];
	uint64_t size = layout_bytes(a->what), limit = w->args[a->len_arg], n;

	if (!w->args[arg] || !step_is_told(w, a))
		return false;
	n = w->result < 0 ? 0 : (uint64_t)w->result < limit ? (uint64_t)w->result : limit;
	*len = fixed ? size : size == 1 && n < LENGTH_MAX ? n : step_capped(n, size);
	return true;
}

static inline bool step_simple(const struct walk *w, unsigned arg, uint64_t *len)
{
	return step_simple_by(w, arg, w->recipe->fixed >> arg & 1, len);
}

/* The values that go into the header, as bits. */
static inline unsigned step_values(const struct walk *w)
{
	const struct recipe *r = w->recipe;

	return r->mode && !(w->args[r->flags_arg] & OPEN_CREATES) ? r->values & ~r->mode
								  : r->values;
}

/* The values first: memory may fill the event, and publish it. */
static inline void record_call(struct writer *w, const struct walk *call)
{
	uint64_t *to = w->open->arg;

	if (call->desc->class == CLASS_QUERY || call->desc->class == CLASS_SOFT)
		w->open->flags |= EVENT_LOOK;
	if (!call->recipe || !call->recipe->known) {
		record_unknown(w, call);
		return;
	}
	for (unsigned bits = step_values(call); bits && to < w->open->arg + EVENT_ARGS;
	     bits &= bits - 1)
		*to++ = call->args[__builtin_ctz(bits)];
	writer_values(w, call->recipe->places);
	if (call->recipe->memory)
		record_memory(w, call);
}

#endif
