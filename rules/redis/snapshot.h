/*
 * A snapshot says how much memory its server used, and ends with a checksum.  Both are
 * another version's own, even if all else is the same.
 */
#include "words.h"

#define SNAPSHOT_HEAD	256	/* what is said about the server stands in so many bytes */

static int64_t snapshot = -1;	/* the file that this process writes one to */

static inline bool snapshot_is(int64_t fd)
{
	return fd == snapshot;
}

static inline bool snapshot_begins(int64_t fd, struct view v)
{
	if (!view_begins(v, "REDIS00"))
		return false;
	snapshot = fd;
	return true;
}

/* Where the number behind "used-mem" begins; the length if there is none. */
static inline size_t snapshot_memory(struct view v)
{
	size_t at = 0;

	while (at < view_len(v) && at < SNAPSHOT_HEAD && !text_here(v, at, "\010used-mem"))
		at++;
	return at < view_len(v) && at < SNAPSHOT_HEAD ? at + 9 : view_len(v);
}

/* The same, but for this number (of 32 bits), and the checksum if it is the end. */
static inline bool snapshot_same(struct view a, struct view b, size_t checksum)
{
	size_t memory = snapshot_memory(a), end = view_len(a) - checksum;

	if (view_len(a) != view_len(b) || view_len(a) < checksum)
		return false;
	for (size_t i = 0; i < end; i++)
		if (view_at(a, i) != view_at(b, i) && (i < memory || i > memory + 4))
			return false;
	return true;
}
