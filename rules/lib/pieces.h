/*
 * The same bytes in other pieces.  What the leader has written and the follower not yet
 * is kept here, for one descriptor at a time.
 */
#define PIECES_ROOM	65536

static struct {
	int64_t fd;
	uint32_t from, to;
	uint8_t bytes[PIECES_ROOM];
} pieces;

/* What the leader's call has written of what it offered. */
static inline struct view piece_written(struct view v, int64_t ret)
{
	return view_sub(v, 0, ret > 0 ? (size_t)ret : 0);
}

static inline struct view pieces_kept(int64_t fd)
{
	return pieces.fd == fd ? view_of(pieces.bytes + pieces.from, pieces.to - pieces.from)
			       : view_none();
}

/* The follower offers all that was written, and maybe more. */
static inline bool piece_covers(struct view written, struct view own)
{
	return view_begins_with(own, written);
}

/* It offers only the beginning: the rest can be kept. */
static inline bool piece_begins(struct view written, struct view own)
{
	return view_len(own) && view_len(own) < view_len(written) &&
	       view_len(written) <= PIECES_ROOM && pieces.from == pieces.to &&
	       view_begins_with(written, own);
}

static inline void pieces_keep(int64_t fd, struct view rest)
{
	pieces.fd = fd;
	pieces.from = 0;
	pieces.to = (uint32_t)view_len(rest);
	for (uint32_t i = 0; i < pieces.to; i++)
		pieces.bytes[i] = (uint8_t)view_at(rest, i);
}

static inline bool piece_goes_on(int64_t fd, struct view own)
{
	struct view kept = pieces_kept(fd);

	return view_len(kept) && view_len(own) &&
	       (view_begins_with(own, kept) || view_begins_with(kept, own));
}

static inline int64_t piece_take(int64_t fd, struct view own)
{
	struct view kept = pieces_kept(fd);
	uint32_t n = (uint32_t)(view_len(own) < view_len(kept) ? view_len(own) : view_len(kept));

	pieces.from += n;
	return n;
}
