/* Who connected, by descriptor: an answer to getpeername. */
#define PEERS		4096
#define PEER_BYTES	28	/* of an address of the Internet */

static struct {
	uint8_t len;
	uint8_t address[PEER_BYTES];
} peers[PEERS];

static inline void peer_note(int64_t fd, struct view address)
{
	if (fd < 0 || fd >= PEERS)
		return;
	peers[fd].len = view_len(address) <= PEER_BYTES ? (uint8_t)view_len(address) : 0;
	for (size_t i = 0; i < peers[fd].len; i++)
		peers[fd].address[i] = (uint8_t)view_at(address, i);
}

static inline struct view peer_of(int64_t fd)
{
	return fd >= 0 && fd < PEERS ? view_of(peers[fd].address, peers[fd].len) : view_none();
}

static inline struct view peer_len(int64_t fd)
{
	static uint8_t len[4];

	len[0] = (uint8_t)view_len(peer_of(fd));
	return view_of(len, sizeof(len));
}
