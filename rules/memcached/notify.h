/*
 * How memcached's main thread wakes a worker: before 1.6.10 by a byte in a pipe, for
 * each connection one; since then by an eventfd, whose count may tell of several at
 * once.  Where one version's is the other's is kept here, by descriptor.
 */
#define NOTIFY_FDS	1024

static struct {
	uint8_t notifies;	/* a pipe or an eventfd of a worker */
	uint64_t owed;		/* connections that the leader has told at once, not yet taken */
	int32_t epoll;		/* the worker's */
	int32_t wakes;		/* of a worker's epoll set: its descriptor */
} notify[NOTIFY_FDS];

#define EPOLL_EVENT	12	/* a packed struct; libevent's data is the descriptor */
#define NOTIFY_BYTES	(128 * EPOLL_EVENT)

/* What epoll told a worker behind a notification: it is to come behind all it tells of. */
static struct {
	int32_t epoll;
	uint32_t len;
	uint8_t bytes[NOTIFY_BYTES];
} notify_rest[64];

static int32_t notify_pair[2];
static uint8_t notify_event[EPOLL_EVENT];

static inline bool notify_is(int64_t fd)
{
	return fd >= 0 && fd < NOTIFY_FDS && notify[fd].notifies;
}

static inline void notify_note(int64_t fd)
{
	if (fd >= 0 && fd < NOTIFY_FDS)
		notify[fd].notifies = 1;
}

static inline int32_t notify_number(struct view v, size_t at)
{
	return view_at(v, at) | view_at(v, at + 1) << 8 | view_at(v, at + 2) << 16;
}

/* The worker's set, and what wakes it. */
static inline void notify_watched(int64_t epoll, int64_t fd)
{
	if (notify_is(fd) && epoll >= 0 && epoll < NOTIFY_FDS) {
		notify[epoll].wakes = (int32_t)fd;
		notify[fd].epoll = (int32_t)epoll;
	}
}

static inline void notify_owe(int64_t fd, struct view count)
{
	if (notify_is(fd) && view_len(count) == 8 && notify_number(count, 0) > 0)
		notify[fd].owed += (uint64_t)notify_number(count, 0) - 1;
}

/* What a worker that waits on this set still has to take. */
static inline bool notify_owed(int64_t epoll)
{
	return epoll >= 0 && epoll < NOTIFY_FDS && notify_is(notify[epoll].wakes) &&
	       notify[notify[epoll].wakes].owed;
}

static inline struct view notify_ends(int64_t fd)
{
	notify_pair[0] = notify_pair[1] = (int32_t)fd;
	return view_of((const uint8_t *)notify_pair, sizeof(notify_pair));
}

/* The worker's place; its first call takes one that is free. */
static inline unsigned notify_place(int64_t epoll)
{
	unsigned i = 0;

	while (i < 63 && notify_rest[i].epoll != epoll && notify_rest[i].epoll)
		i++;
	notify_rest[i].epoll = (int32_t)epoll;
	return i;
}

/* How much of it comes first: up to the notification. */
static inline size_t notify_first(int64_t epoll, struct view events)
{
	size_t at = 0;

	while (at < view_len(events)) {
		int32_t fd = notify_number(events, at + 4);

		at += EPOLL_EVENT;
		if (epoll >= 0 && epoll < NOTIFY_FDS && notify_is(fd) && fd == notify[epoll].wakes)
			break;
	}
	return at;
}

static inline bool notify_splits(int64_t epoll, struct view events)
{
	size_t first = notify_first(epoll, events);

	return first < view_len(events) && view_len(events) - first <= NOTIFY_BYTES;
}

/* The rest is kept. */
static inline struct view notify_split(int64_t epoll, struct view events)
{
	size_t first = notify_first(epoll, events);
	unsigned place = notify_place(epoll);

	notify_rest[place].len = 0;
	for (size_t i = first; i < view_len(events) && i - first < NOTIFY_BYTES; i++)
		notify_rest[place].bytes[notify_rest[place].len++] = (uint8_t)view_at(events, i);
	return view_sub(events, 0, first);
}

/* In bytes. */
static inline uint32_t notify_kept(int64_t epoll)
{
	return notify_rest[notify_place(epoll)].len;
}

static inline struct view notify_give(int64_t epoll)
{
	unsigned place = notify_place(epoll);
	struct view v = view_of(notify_rest[place].bytes, notify_rest[place].len);

	notify_rest[place].len = 0;
	return v;
}

/* "It can be read". */
static inline struct view notify_ready(int64_t epoll)
{
	int32_t fd = notify[epoll].wakes;

	notify[fd].owed--;
	notify_event[0] = 1;
	notify_event[4] = (uint8_t)fd;
	notify_event[5] = (uint8_t)(fd >> 8);
	return view_of(notify_event, sizeof(notify_event));
}
