/*
 * A connection that the leader has taken under a number that the follower has not closed
 * yet waits here, with those behind it, until the follower has.
 */
#define WAITING	1024

enum { SETS_UP_LEADER = 1, SETS_UP_FOLLOWER = 2 };

static struct {
	int64_t listener, fd;
	uint8_t len;
	uint8_t address[PEER_BYTES];
} waiting[WAITING];
static uint32_t waiting_first, waiting_end;

static uint8_t sets_up[PEERS];	/* who has yet to set up a connection that waited */
static bool waiting_taken;	/* it was the last: there is no other */

static inline void to_set_up(int64_t fd, unsigned who)
{
	if (peer_is(fd))
		sets_up[fd] |= (uint8_t)who;
}

static inline bool waiting_any(void)
{
	return waiting_first != waiting_end;
}

static inline bool waiting_must(int64_t fd)
{
	return peer_has(fd, HAS_FOLLOWER) && waiting_end - waiting_first < WAITING;
}

static inline void waiting_add(int64_t listener, int64_t fd, struct view address)
{
	uint32_t at = waiting_end % WAITING;

	if (!peer_is(fd) || waiting_end - waiting_first == WAITING)
		return;
	waiting_end++;
	waiting[at].listener = listener;
	waiting[at].fd = fd;
	waiting[at].len = view_len(address) <= PEER_BYTES ? (uint8_t)view_len(address) : 0;
	for (size_t i = 0; i < waiting[at].len; i++)
		waiting[at].address[i] = (uint8_t)view_at(address, i);
	peers[fd].has |= HAS_LEADER;
	to_set_up(fd, SETS_UP_LEADER);
}

/* The follower has closed what is in its way. */
static inline bool waiting_ready(void)
{
	return waiting_any() && !peer_has(waiting[waiting_first % WAITING].fd, HAS_FOLLOWER);
}

static inline bool waiting_at(int64_t listener)
{
	return waiting_ready() && waiting[waiting_first % WAITING].listener == listener;
}

/* What epoll tells the follower: somebody connects. */
static inline struct view waiting_event(void)
{
	static uint8_t event[12] = { 1 };
	uint64_t data = (uint64_t)waiting[waiting_first % WAITING].listener;

	for (unsigned i = 0; i < sizeof(data); i++)
		event[4 + i] = (uint8_t)(data >> 8 * i);
	return view_of(event, sizeof(event));
}

static inline int64_t waiting_take(void)
{
	uint32_t at = waiting_first++ % WAITING;
	int64_t fd = waiting[at].fd;

	peer_note(fd, view_of(waiting[at].address, waiting[at].len), HAS_FOLLOWER);
	to_set_up(fd, SETS_UP_FOLLOWER);
	waiting_taken = true;
	return fd;
}

static inline bool setting_up(int64_t fd, unsigned who)
{
	return peer_is(fd) && sets_up[fd] & who;
}

static inline void set_up(int64_t fd, unsigned who)
{
	if (peer_is(fd))
		sets_up[fd] &= (uint8_t)~who;
}
