/*
 * The follower's walk: values and sent bytes are compared with the event's,
 * received bytes are written to where the follower wants them.  Nothing is
 * written beyond what the follower's own call has room for: the event's lengths
 * come from the leader, and another version may have passed smaller buffers.
 */
#include "engine/abi/area.h"
#include "engine/abi/brief.h"
#include "engine/core/must.h"
#include "engine/core/walk.h"

#define SIGACTION_FLAGS	8	/* offsets in the kernel's struct sigaction */
#define SIGACTION_RESTORER 16
#define SA_RESTORER_BIT	0x04000000u
#define SIGSET_BYTES	8	/* no other size is one */
#define POLLFD_ASKED	6	/* fd and events; the rest is answered */
#define EPOLL_EVENTS	4	/* the data behind them is the version's own */

#define PATH_LOOKED	4096	/* with its end: the kernel takes no longer one */
#define ADDRESS_MAX	128
#define FAMILY_UNIX	1
#define FAMILY_INET	2
#define INET_LENGTH	8	/* family, port, address */
_Static_assert(EVENT_ARGS <= CALL_ARGS, "a header has no more than a call");

/* Eight bytes of anything, anywhere. */
typedef uint64_t __attribute__((may_alias, aligned(1))) word;

struct matching {
	struct reader *r;
	const struct walk *call;
	struct mismatch *m;
	bool answer;
	uint8_t compare;	/* arguments that are compared, as bits */
	uint8_t leave;		/* that are neither compared nor written */
};

/* A mask that is not there has no length: the argument is whatever the register held. */
static bool is_length_of_none(const struct walk *call, unsigned value)
{
	for (unsigned i = 0; i < call->desc->nargs; i++) {
		const struct arg_desc *a = &call->desc->args[i];

		if (a->kind == KIND_MEM && a->what == LAYOUT_sigset && a->len_arg == value)
			return a->dir == DIR_IN && !call->args[i];
	}
	return false;
}

bool match_values(const struct walk *call, const struct event *e, struct mismatch *m)
{
	unsigned values = 0;

	for (unsigned i = 0; i < call->desc->nargs; i++) {
		if (step_kind(call, i) != STEP_VALUE || values == EVENT_ARGS)
			continue;
		if (!step_same_value(&call->desc->args[i], call->args[i], e->arg[values++]) &&
		    !is_length_of_none(call, i)) {
			*m = (struct mismatch){ DIFFERS_VALUE, i, 0 };
			return false;
		}
	}
	return true;
}

/* --- the event's payload ----------------------------------------------------- */

/* The next piece, waiting for it; 0: the stream has no more. */
static size_t next_piece(struct reader *r, size_t want, const uint8_t **at)
{
	size_t n;

	/* Of nothing there is never a piece: it would be waited for to the end. */
	MUST(want);
	while (!(n = reader_piece(r, want, at)))
		if (!host_more(r))
			return 0;
	return n;
}

static bool get(struct reader *r, void *to, size_t len)
{
	uint8_t *out = to;

	while (len) {
		const uint8_t *at;
		size_t n = next_piece(r, len, &at);

		if (!n)
			return false;
		for (size_t i = 0; i < n; i++)
			*out++ = at[i];
		len -= n;
	}
	return true;
}

static bool skip(struct reader *r, uint64_t len)
{
	while (len) {
		const uint8_t *at;
		size_t n = next_piece(r, len, &at);

		if (!n)
			return false;
		len -= n;
	}
	return true;
}

static uint32_t get_length(struct reader *r)
{
	uint32_t len = 0;

	return get(r, &len, sizeof(len)) ? len : 0;
}

/* --- what the follower receives ------------------------------------------------ */

/* Writes the section's next `len` bytes, `room` of them at most. */
static bool write_out(struct matching *k, uint64_t to, uint64_t len, uint64_t room)
{
	uint64_t n = k->answer && to ? (len < room ? len : room) : 0, done = 0;

	while (done < n) {
		const uint8_t *at;
		size_t got = next_piece(k->r, n - done, &at);

		if (!got)
			return false;
		target_out(to + done, at, got);	/* a bad pointer is the program's */
		done += got;
	}
	return skip(k->r, len - n);
}

static bool scatter(struct matching *k, uint64_t spans, uint64_t n, uint64_t len)
{
	for (; n && len; n--, spans += sizeof(struct span)) {
		struct span s;
		uint64_t part;

		if (target_in(&s, spans, sizeof(s)))
			break;
		part = s.len < len ? s.len : len;
		if (!write_out(k, s.at, part, part))
			return false;
		len -= part;
	}
	return skip(k->r, len);
}

/* --- what the follower sends ----------------------------------------------------- */

/* Which bytes of a section are compared: the rest is the version's own. */
static bool compared(const struct call_desc *d, unsigned layout, uint64_t offset)
{
	switch (layout) {
	case LAYOUT_timespec:	/* how long to wait: clocks differ a little, and so do waits */
	case LAYOUT_timeval:
		return d->class != CLASS_INPUT;
	case LAYOUT_epoll_event:
		return offset < EPOLL_EVENTS;
	case LAYOUT_sigaction:
		return offset >= SIGACTION_FLAGS &&
		       (offset < SIGACTION_RESTORER || offset >= SIGACTION_RESTORER + 8) &&
		       offset != SIGACTION_FLAGS + 3;	/* SA_RESTORER and its like */
	case LAYOUT_flock:	/* a hole, and what only an answer fills */
		return offset < 4 || (offset >= 8 && offset < 24);
	case LAYOUT_sigset:
		return offset < SIGSET_BYTES;
	case LAYOUT_sigevent:
	case LAYOUT_sigset_arg:	/* an address, and the only length that there is */
		return false;
	default:
		return true;
	}
}

static bool differs(struct matching *k, unsigned arg, uint32_t what, uint64_t offset)
{
	*k->m = (struct mismatch){ what, arg, offset };
	return false;
}

/*
 * Where a bad address is no difference: in a call that failed in the leader, too, and in
 * ioctls, some of which take a number where theirs says that there is an address.  Else
 * it must be as bad in the leader, which told zeros then: the kernel looked at less than
 * the row says.
 */
static bool may_be_bad(const struct matching *k, unsigned arg)
{
	return k->call->result < 0 || k->call->desc->args[arg].len_rule == LEN_RULE_IOC;
}

#define PART	256	/* bytes that are compared at a time */

/* Where the two begin to differ; n: nowhere. */
static size_t first_difference(const uint8_t *mine, const uint8_t *theirs, size_t n)
{
	size_t i = 0;

	while (i + 8 <= n && *(const word *)(mine + i) == *(const word *)(theirs + i))
		i += 8;
	while (i < n && mine[i] == theirs[i])
		i++;
	return i;
}

/* Compares a piece with the follower's memory; the first difference is noted. */
static bool same_piece(struct matching *k, unsigned arg, uint64_t at, const uint8_t *piece,
		       size_t n, uint64_t offset)
{
	unsigned layout = k->call->desc->args[arg].what;
	uint8_t mine[PART];

	while (n) {
		size_t part = n < PART ? n : PART, i = 0;

		if (!step_fetch(mine, at + offset, part) && may_be_bad(k, arg))
			i = part;
		for (; (i += first_difference(mine + i, piece + i, part - i)) < part; i++)
			if (compared(k->call->desc, layout, offset + i))
				return differs(k, arg, DIFFERS_BYTES, offset + i);
		piece += part;
		offset += part;
		n -= part;
	}
	return true;
}

static bool same_bytes(struct matching *k, unsigned arg, uint64_t at, uint64_t len, uint64_t done)
{
	uint64_t end = done + len;

	while (done < end) {
		const uint8_t *piece;
		size_t n = next_piece(k->r, end - done, &piece);

		if (!n)
			return differs(k, arg, DIFFERS_LENGTH, done);
		if (!same_piece(k, arg, at, piece, n, done))
			return false;
		done += n;
	}
	return true;
}

static bool same_spans(struct matching *k, unsigned arg, uint64_t spans, uint64_t n, uint64_t len)
{
	uint64_t done = 0;

	for (; n && done < len; n--, spans += sizeof(struct span)) {
		struct span s;
		uint64_t part;

		if (target_in(&s, spans, sizeof(s)))
			break;
		part = s.len < len - done ? s.len : len - done;
		/* Offsets count from the first span's first byte. */
		if (!same_bytes(k, arg, s.at - done, part, done))
			return false;
		done += part;
	}
	return done == len || differs(k, arg, DIFFERS_LENGTH, done);
}

static bool same_section(struct matching *k, unsigned arg, uint64_t at, uint64_t len)
{
	uint32_t theirs = get_length(k->r);

	if (theirs != len)
		return differs(k, arg, DIFFERS_LENGTH, theirs < len ? theirs : len);
	return same_bytes(k, arg, at, len, 0);
}

/* How many bytes of an address mean something: what is behind them may be anything. */
static uint32_t address_length(const uint8_t *a, uint32_t len)
{
	uint32_t n = 3;

	if (len < 3)
		return len;
	switch (a[0] | a[1] << 8) {
	case FAMILY_UNIX:
		if (!a[2])	/* an abstract name has all its bytes */
			return len;
		while (n < len && a[n - 1])
			n++;
		return n;
	case FAMILY_INET:
		return len < INET_LENGTH ? len : INET_LENGTH;
	default:
		return len;
	}
}

/* Nor does what is behind a name's end. */
static uint32_t name_length(const uint8_t *a, uint32_t len)
{
	uint32_t n = 0;

	while (n < len && a[n])
		n++;
	return n < len ? n + 1 : len;
}

/* Of an address, or a thread's name. */
static bool same_meaning(struct matching *k, unsigned arg, uint64_t at, uint64_t len)
{
	uint8_t mine[ADDRESS_MAX] = { 0 }, theirs[ADDRESS_MAX] = { 0 };
	uint32_t n = get_length(k->r), means;

	if (n != len || n > ADDRESS_MAX)
		return n == len ? same_bytes(k, arg, at, len, 0)
				: differs(k, arg, DIFFERS_LENGTH, n < len ? n : len);
	if (!get(k->r, theirs, n))
		return differs(k, arg, DIFFERS_LENGTH, 0);
	if (!step_fetch(mine, at, n) && may_be_bad(k, arg))
		return true;
	means = k->call->desc->args[arg].what == LAYOUT_taskname ? name_length(theirs, n)
								 : address_length(theirs, n);
	for (uint32_t i = 0; i < means; i++)
		if (mine[i] != theirs[i])
			return differs(k, arg, DIFFERS_BYTES, i);
	return true;
}

/* Text: compared with its end, so that a longer one is not the same. */
static bool same_text(struct matching *k, unsigned arg, uint64_t at)
{
	uint32_t len = get_length(k->r);
	char end = 0;

	if (!at)
		return !len || differs(k, arg, DIFFERS_LENGTH, 0);
	if (!same_bytes(k, arg, at, len, 0))
		return false;
	if (len < STRING_MAX && !target_in(&end, at + len, 1) && end)
		return differs(k, arg, DIFFERS_BYTES, len);
	return true;
}

static size_t prefix_length(const char *prefix, const char *of)
{
	size_t n = 0;

	while (prefix[n] && prefix[n] == of[n])
		n++;
	/* Whole names only: /opt/a is no prefix of /opt/ab. */
	return prefix[n] || (of[n] && of[n] != '/' && n && prefix[n - 1] != '/') ? 0 : n;
}

/* The leader's path, its prefix exchanged, is the text at `at`. */
static bool same_mapped(const struct path_map *m, const char *leaders, uint64_t at)
{
	size_t skip = prefix_length(m->from, leaders);
	const char *parts[2] = { m->to, leaders + skip };
	char c = 1;

	for (int i = 0; skip && i < 2; i++)
		for (const char *p = parts[i]; *p; p++, at++)
			if (target_in(&c, at, 1) || c != *p)
				return false;
	return skip && !target_in(&c, at, 1) && !c;
}

/* The text of this length, which is the next of the payload, is ours under a map. */
static bool same_under_map(struct matching *k, uint32_t len, uint64_t at)
{
	char leaders[PATH_LOOKED];
	const struct path_map *m;
	uint32_t maps, from = 0;
	char c = 0;

	m = host_path_maps(&maps);
	if (!maps || !at || len >= sizeof(leaders) || !get(k->r, leaders, len))
		return false;
	leaders[len] = 0;
	/* Of a word such as --file=PATH what is before the path is the same. */
	if (len && leaders[0] == '-')
		for (from = len; from && leaders[from - 1] != '='; from--)
			;
	for (uint32_t i = 0; i < from; i++)
		if (target_in(&c, at + i, 1) || c != leaders[i])
			return false;
	for (uint32_t i = 0; i < maps; i++)
		if (same_mapped(&m[i], leaders + from, at + from))
			return true;
	return false;
}

/* A path may be another under a map; any other text must be the same. */
static bool same_path(struct matching *k, unsigned arg, uint64_t at)
{
	struct reader before = *k->r;

	if (same_text(k, arg, at))
		return true;
	*k->r = before;
	return same_under_map(k, get_length(k->r), at);
}

/* The same of a word of a command. */
static bool same_word(struct matching *k, unsigned arg, uint64_t at, uint32_t len)
{
	struct reader before = *k->r;
	char end = 0;

	if (same_bytes(k, arg, at, len, 0)) {
		if (len == STRING_MAX || target_in(&end, at + len, 1) || !end)
			return true;
		differs(k, arg, DIFFERS_BYTES, len);
	}
	*k->r = before;
	return same_under_map(k, len, at);
}

static bool same_strings(struct matching *k, unsigned arg, uint64_t at)
{
	for (uint32_t i = 0; i <= STRINGS_MAX; i++, at += 8) {
		uint32_t len = get_length(k->r);
		uint64_t string = 0;

		target_in(&string, at, 8);
		if (len == STRINGS_END)
			return !string || i == STRINGS_MAX || differs(k, arg, DIFFERS_LENGTH, i);
		if (!string)
			return differs(k, arg, DIFFERS_LENGTH, i);
		if (!same_word(k, arg, string, len))
			return false;
	}
	return true;
}

/* --- messages ----------------------------------------------------------------------- */

/* Each tells how many bytes of the message were moved. */
static bool message_sent(struct matching *k, unsigned arg, const struct message *m, uint32_t *moved)
{
	get_length(k->r);	/* the flags: of receiving only */
	if (!same_meaning(k, arg, m->name, m->name ? m->name_len & MESSAGE_NAME : 0))
		return false;
	if (!same_section(k, arg, m->control, m->control ? m->control_len & MESSAGE_CONTROL : 0))
		return false;
	*moved = get_length(k->r);
	return same_spans(k, arg, m->iov, m->iov_n, *moved);
}

static bool message_received(struct matching *k, uint64_t at, struct message *m, uint32_t *moved)
{
	uint32_t flags = get_length(k->r), name = get_length(k->r), control;

	if (!write_out(k, m->name, name, m->name_len))
		return false;
	control = get_length(k->r);
	if (!write_out(k, m->control, control, m->control_len))
		return false;
	*moved = get_length(k->r);
	if (!scatter(k, m->iov, m->iov_n, *moved))
		return false;
	m->name_len = m->name ? name : m->name_len;
	m->control_len = control;
	m->flags = flags;
	if (k->answer)
		target_out(at, m, sizeof(*m));
	return true;
}

static bool message_skip(struct matching *k, uint32_t *moved)
{
	get_length(k->r);
	if (!skip(k->r, get_length(k->r)) || !skip(k->r, get_length(k->r)))
		return false;
	*moved = get_length(k->r);
	return skip(k->r, *moved);
}

static bool message(struct matching *k, unsigned arg, uint64_t at, uint32_t *moved)
{
	struct message m = { 0 };

	if (!step_fetch(&m, at, sizeof(m)) && !may_be_bad(k, arg))
		return differs(k, arg, DIFFERS_LENGTH, 0);
	if (k->call->desc->args[arg].dir == DIR_OUT)
		return message_received(k, at, &m, moved) || differs(k, arg, DIFFERS_LENGTH, 0);
	if (!(k->compare >> arg & 1))
		return message_skip(k, moved);
	return message_sent(k, arg, &m, moved);
}

/* Sent or received, each is told how many bytes it was. */
static bool messages(struct matching *k, unsigned arg, uint64_t at)
{
	for (int64_t i = 0; i < k->call->result; i++, at += MESSAGES_STRIDE) {
		uint32_t moved = 0;

		if (!message(k, arg, at, &moved))
			return false;
		if (k->answer)
			target_out(at + MESSAGE_MOVED, &moved, sizeof(moved));
	}
	return true;
}

/* --- the walk ------------------------------------------------------------------------- */

static bool vector(struct matching *k, unsigned arg, uint64_t at)
{
	const struct walk *c = k->call;
	uint64_t n = c->args[c->desc->args[arg].len_arg];
	uint32_t bytes = get_length(k->r);

	if (c->desc->args[arg].dir == DIR_IN)
		return same_spans(k, arg, at, n, bytes);
	return scatter(k, at, n, bytes) || differs(k, arg, DIFFERS_LENGTH, 0);
}

static bool conf(struct matching *k, unsigned arg, uint64_t at)
{
	struct conf mine = { 0 }, theirs = { 0 };
	uint32_t n = get_length(k->r), room;

	if (n != sizeof(theirs) || !get(k->r, &theirs, n) || target_in(&mine, at, sizeof(mine)))
		return differs(k, arg, DIFFERS_LENGTH, 0);
	room = (int32_t)mine.len > 0 ? mine.len : 0;
	n = get_length(k->r);
	if (!write_out(k, mine.at, n, room))
		return differs(k, arg, DIFFERS_LENGTH, 0);
	mine.len = mine.at && theirs.len > room ? room : theirs.len;
	if (k->answer)
		target_out(at, &mine.len, sizeof(mine.len));
	return true;
}

/* pollfd: what is asked is compared, what is answered is written. */
static bool polled(struct matching *k, unsigned arg, uint64_t at, uint64_t room)
{
	uint32_t len = get_length(k->r);

	if (len != room)
		return differs(k, arg, DIFFERS_LENGTH, len < room ? len : room);
	for (uint64_t i = 0; i < len; i += 8) {
		uint8_t mine[8], theirs[8];

		if (!get(k->r, theirs, 8) || target_in(mine, at + i, 8))
			return differs(k, arg, DIFFERS_LENGTH, i);
		for (unsigned b = 0; b < POLLFD_ASKED; b++)
			if (mine[b] != theirs[b])
				return differs(k, arg, DIFFERS_BYTES, i + b);
		if (k->answer)
			target_out(at + i + POLLFD_ASKED, theirs + POLLFD_ASKED, 2);
	}
	return true;
}

static bool bytes(struct matching *k, unsigned arg, uint64_t at)
{
	const struct arg_desc *a = &k->call->desc->args[arg];
	uint64_t room = a->len_rule == LEN_RULE_SELF ? step_self(k->call, arg)
						     : step_length(k->call, arg);

	if (a->dir == DIR_IN && (a->what == LAYOUT_sockaddr || a->what == LAYOUT_taskname))
		return same_meaning(k, arg, at, room);
	if (a->dir == DIR_IN)
		return same_section(k, arg, at, room);
	if (a->what == LAYOUT_pollfd)
		return polled(k, arg, at, room);
	return write_out(k, at, get_length(k->r), room) || differs(k, arg, DIFFERS_LENGTH, 0);
}

static bool argument_skip(struct matching *k, unsigned i)
{
	uint32_t len;

	switch (step_kind(k->call, i)) {
	case STEP_TEXT: case STEP_BYTES: case STEP_VECTOR:
		return skip(k->r, get_length(k->r));
	case STEP_MESSAGE:
		return message_skip(k, &len);
	case STEP_CONF:
		return skip(k->r, get_length(k->r)) && skip(k->r, get_length(k->r));
	case STEP_MESSAGES:
		for (int64_t n = 0; n < k->call->result; n++)
			if (!message_skip(k, &len))
				return false;
		return true;
	case STEP_STRINGS:
		while ((len = get_length(k->r)) != STRINGS_END)
			if (!len || !skip(k->r, len))
				return false;
		return true;
	default:
		return true;
	}
}

static bool is_left_out(const struct matching *k, unsigned i)
{
	return k->leave >> i & 1 ||
	       (!(k->compare >> i & 1) && k->call->desc->args[i].dir == DIR_IN);
}

static bool argument(struct matching *k, unsigned i)
{
	uint64_t at = k->call->args[i];
	uint32_t moved;		/* the call's result says it */

	if (is_left_out(k, i))
		return argument_skip(k, i);
	switch (step_kind(k->call, i)) {
	case STEP_TEXT:
		return k->call->desc->args[i].kind == KIND_PATH ? same_path(k, i, at)
								: same_text(k, i, at);
	case STEP_BYTES:
		return bytes(k, i, at);
	case STEP_VECTOR:
		return vector(k, i, at);
	case STEP_MESSAGE:
		return message(k, i, at, &moved);
	case STEP_MESSAGES:
		return messages(k, i, at);
	case STEP_STRINGS:
		return same_strings(k, i, at);
	case STEP_CONF:
		return conf(k, i, at);
	default:
		return true;
	}
}

bool match_memory(struct reader *r, const struct walk *call, bool answer, struct mismatch *m)
{
	return match_memory_but(r, call, answer, 0xff, 0, m);
}

bool match_memory_but(struct reader *r, const struct walk *call, bool answer, uint8_t compare,
		      uint8_t leave, struct mismatch *m)
{
	struct matching k = { r, call, m, answer, compare, leave };

	for (unsigned i = 0; i < call->desc->nargs; i++)
		if (!argument(&k, i))
			return false;
	return true;
}
