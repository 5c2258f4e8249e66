/* Connections by descriptor: who has them, and who connected (an answer to getpeername). */
#define PEERS		16384
#define PEER_BYTES	28	/* of an address of the Internet */

enum { HAS_LEADER = 1, HAS_FOLLOWER = 2 };

static struct {
	uint8_t has;
	uint8_t len;
	uint8_t address[PEER_BYTES];
} peers[PEERS];

static inline bool peer_is(int64_t fd)
{
	return fd >= 0 && fd < PEERS;
}

static inline void peer_note(int64_t fd, struct view address, unsigned has)
{
	if (!peer_is(fd))
		return;
	peers[fd].has |= (uint8_t)has;
	peers[fd].len = view_len(address) <= PEER_BYTES ? (uint8_t)view_len(address) : 0;
	for (size_t i = 0; i < peers[fd].len; i++)
		peers[fd].address[i] = (uint8_t)view_at(address, i);
}

static inline bool peer_has(int64_t fd, unsigned who)
{
	return peer_is(fd) && peers[fd].has & who;
}

static inline void peer_closed(int64_t fd, unsigned who)
{
	if (peer_is(fd))
		peers[fd].has &= (uint8_t)~who;
}

static inline struct view peer_of(int64_t fd)
{
	return peer_is(fd) ? view_of(peers[fd].address, peers[fd].len) : view_none();
}

static inline struct view peer_len(int64_t fd)
{
	static uint8_t len[4];

	len[0] = (uint8_t)view_len(peer_of(fd));
	return view_of(len, sizeof(len));
}
