/* Pipes that a leading 8.0 has and 7.0 has not; the first of all is both's. */
#define PIPES	8

static int32_t pipe_ends[2 * PIPES];
static unsigned pipes;
static bool pipe_of_both;

static inline void pipe_note(struct view fds)
{
	if (pipes == PIPES || view_len(fds) != sizeof(pipe_ends[0]) * 2)
		return;
	for (unsigned end = 0; end < 2; end++) {
		uint32_t fd = 0;

		for (unsigned i = 0; i < sizeof(fd); i++)
			fd |= (uint32_t)view_at(fds, end * sizeof(fd) + i) << 8 * i;
		pipe_ends[2 * pipes + end] = (int32_t)fd;
	}
	pipes++;
}

static inline bool pipe_is(int64_t fd)
{
	for (unsigned i = 0; i < 2 * pipes; i++)
		if (pipe_ends[i] == fd)
			return true;
	return false;
}

/* What 8.0 watches before it listens, and 7.0 after. */
static int64_t watched_early = -1;
