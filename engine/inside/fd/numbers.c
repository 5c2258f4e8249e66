/* Which numbers of descriptors a call gives up, copies and gives: by its row and arguments. */
#include <linux/close_range.h>
#include <linux/socket.h>

#include "engine/core/must.h"
#include "engine/inside/fd/numbers.h"
#include "engine/inside/fd/table.h"

#define SOL_SOCKET_	1
#define RIGHTS		1	/* SCM_RIGHTS */
#define MESSAGES_MOST	1024	/* UIO_MAXIOV: no call takes more */

/* The kernel's struct cmsghdr. */
struct control {
	uint64_t len;
	int32_t level, type;
};

_Static_assert(sizeof(struct control) == 16 && sizeof(struct control) % sizeof(uint64_t) == 0,
	       "its data stand right behind it");

bool numbers_gone(const struct walk *w, struct numbers *n)
{
	const uint64_t *a = w->args;

	MUST(w->desc);
	if (call_has(w->desc, TRAIT_CLOSES_RANGE)) {
		*n = (struct numbers){ (uint32_t)a[0], (uint32_t)a[1] };
		return n->first <= n->last && !((uint32_t)a[2] & ~CLOSE_RANGE_UNSHARE);
	}
	n->first = n->last = (int32_t)a[call_has(w->desc, TRAIT_REPLACES)];
	if (call_has(w->desc, TRAIT_REPLACES))
		return (int32_t)a[0] != (int32_t)a[1] && (int32_t)a[1] >= 0;
	return call_has(w->desc, TRAIT_CLOSES) && n->first >= 0;
}

bool numbers_copied(const struct walk *w)
{
	return call_has(w->desc, TRAIT_COPIES) && w->result >= 0 &&
	       w->result != (int32_t)w->args[0];
}

static void array_given(uint64_t at, uint64_t n, void (*on)(void *what, int32_t fd), void *what)
{
	int32_t fd;

	for (; n-- && !target_in(&fd, at, sizeof(fd)); at += sizeof(fd))
		on(what, fd);
}

static void message_given(uint64_t at, void (*on)(void *what, int32_t fd), void *what)
{
	struct message m;
	struct control c;
	uint64_t end;

	if (target_in(&m, at, sizeof(m)) || m.control_len < sizeof(c))
		return;
	end = m.control + m.control_len;
	for (at = m.control; end - at >= sizeof(c) && at < end; at += (c.len + 7) & ~7ull) {
		if (target_in(&c, at, sizeof(c)) || c.len < sizeof(c) || c.len > end - at)
			return;
		if (c.level == SOL_SOCKET_ && c.type == RIGHTS)
			array_given(at + sizeof(c), (c.len - sizeof(c)) / sizeof(int32_t), on,
				    what);
	}
}

/* A call may give again what it was given: dup2 of a number to itself, signalfd. */
static bool is_new(const struct walk *w)
{
	return w->desc->args[0].kind != KIND_FD || !w->desc->nargs ||
	       w->result != (int32_t)w->args[0];
}

void numbers_given(const struct walk *w, void (*on)(void *what, int32_t fd), void *what)
{
	const struct call_desc *d = w->desc;

	if (w->result < 0)
		return;
	if (d->result == KIND_FD && is_new(w))
		on(what, (int32_t)w->result);
	for (unsigned i = 0; i < d->nargs; i++) {
		if (d->args[i].kind == KIND_MEM && d->args[i].what == LAYOUT_fdpair)
			array_given(w->args[i], 2, on, what);
		for (int64_t k = 0; arg_is_message(&d->args[i]) && k < MESSAGES_MOST &&
				    k < (d->args[i].what == LAYOUT_msghdr ? 1 : w->result); k++)
			message_given(w->args[i] + (uint64_t)k * MESSAGES_STRIDE, on, what);
	}
}
