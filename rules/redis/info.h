/*
 * What INFO says of memory is the allocator's, whose background threads go by their own
 * time: used_memory:1005752, allocator_active:8364032, mem_fragmentation_ratio:8.36.  So
 * does the thread that frees what UNLINK left it: lazyfree_pending_objects:0.  In twins
 * these figures may differ, and then the reply may have another length, and all that they
 * have ever sent, too: total_net_output_bytes:34823, instantaneous_output_kbps:52.51.
 */
#include "words.h"

/* A reply's length: $5165, or =5169 of one that says that it is text (RESP3). */
static inline bool info_length(struct view v, size_t at)
{
	return text_here(v, at, "$") || text_here(v, at, "=");
}

/* The line is about memory or what was sent, or the reply's length. */
static inline bool info_varies(struct view v, size_t at)
{
	return text_here(v, at, "used_memory") || text_here(v, at, "allocator_") ||
	       text_here(v, at, "mem_") || text_here(v, at, "rss_overhead") ||
	       text_here(v, at, "active_defrag") || text_here(v, at, "lazyfree") ||
	       text_here(v, at, "total_net_output") ||
	       text_here(v, at, "instantaneous_output") || info_length(v, at);
}

/* Behind the line's end. */
static inline size_t info_next(struct view v, size_t at)
{
	while (at < view_len(v) && view_at(v, at) != '\n')
		at++;
	return at + 1;
}

/* With what was asked for in one go before it, perhaps: +PONG. */
static inline bool info_is(struct view v)
{
	size_t at = 0;

	while (at < view_len(v) && !text_here(v, at, "used_memory:"))
		at = info_next(v, at);
	return at < view_len(v);
}

static inline size_t info_value(struct view v, size_t at)
{
	while (at < view_len(v) && view_at(v, at) != ':' && view_at(v, at) != '\n')
		at++;
	return at;
}

/* The same lines, but for the values of those that vary. */
static inline bool info_same(struct view a, struct view b)
{
	size_t i = 0, j = 0;

	while (i < view_len(a) && j < view_len(b)) {
		size_t to = info_next(a, i), len = info_varies(a, i) ? info_value(a, i) - i : to - i;

		if (info_length(a, i))	/* which has no name */
			len = 1;
		for (size_t n = 0; n < len; n++)
			if (view_at(a, i + n) != view_at(b, j + n))
				return false;
		i = to;
		j = info_next(b, j);
	}
	return i >= view_len(a) && j >= view_len(b);
}
