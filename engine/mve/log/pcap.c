/*
 * Packets.  A recording has what calls took and gave, and no packet: they are made here, as few
 * as will do, so that a reader of pcap files puts together again what was said.  A stream begins
 * with the handshake and has no acknowledgements of their own; what the kernel alone has seen
 * (sendfile, splice) are packets that say how long they were, and are cut behind their headers;
 * behind MISSING_MOST of them the stream goes on where it would, as it does where packets were not
 * caught.  So a file is as long as the recording that it is made from, whatever that says.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "engine/core/must.h"
#include "engine/mve/log/pcap.h"

#define MAGIC_NS	0xa1b23c4du
#define LINK_RAW	101		/* a packet begins with its IP header */
#define PACKET_MOST	65535
#define SEGMENT		32768		/* bytes of a stream in a packet, at most */
#define MISSING_MOST	64		/* packets without a byte, of one call */
#define HEADERS_MOST	80		/* IPv6, TCP and its options */
#define DATAGRAM_MOST	(PACKET_MOST - HEADERS_MOST)
#define TTL		64

enum { FIN = 1, SYN = 2, PSH = 8, ACK = 16 };
enum side { PEER, SERVER, SIDES };

/* What a connection's packets go on with. */
struct flow {
	bool over[SIDES];
	uint32_t seq[SIDES];	/* of who sends it */
};

struct file_head {
	uint32_t magic;
	uint16_t major, minor;
	uint32_t zone, figures, most, link;
};

struct packet_head {
	uint32_t seconds, ns, here, length;
};

/* A packet that is put together; `body` is behind its headers, and may not be there. */
struct packet {
	uint8_t head[HEADERS_MOST];
	size_t head_len;
	const uint8_t *body;
	size_t have, len;
	struct address from, to;
	uint8_t protocol;
};

void pcap_begin(struct pcap *p, FILE *file)
{
	struct file_head h = { MAGIC_NS, 2, 4, 0, 0, PACKET_MOST, LINK_RAW };

	*p = (struct pcap){ .file = file };
	fwrite(&h, sizeof(h), 1, file);
}

/* --- addresses -------------------------------------------------------------------------- */

static bool is_any(const struct address *a)
{
	static const uint8_t zero[sizeof(a->ip)];

	return !memcmp(a->ip, zero, sizeof(zero));
}

static bool is_near(const struct address *a)
{
	static const struct in6_addr near = IN6ADDR_LOOPBACK_INIT;

	return a->family == AF_INET ? a->ip[0] == 127 : !memcmp(a->ip, &near, sizeof(near));
}

/* Sockets without addresses, as Unix's, and peers that nobody asked for get one: 127.0.0.2. */
static struct address made_up(uint16_t port)
{
	return (struct address){ .family = AF_INET, .port = port, .ip = { 127, 0, 0, 2 } };
}

/* Both of one family; who listens on all addresses of the machine is near to who is. */
static void addresses_mend(struct address *own, struct address *peer, uint64_t number)
{
	if (peer->family != AF_INET && peer->family != AF_INET6) {
		*peer = made_up((uint16_t)(1024 + number % 60000));
		*own = made_up(1);
		return;
	}
	if (!address_known(peer))
		*peer = made_up((uint16_t)(1024 + number % 60000));
	if (own->family != peer->family)
		*own = (struct address){ .family = peer->family, .port = own->port };
	if (is_any(own) && is_near(peer))
		memcpy(own->ip, peer->ip, sizeof(own->ip));
}

/* --- a packet ------------------------------------------------------------------------------ */

static uint32_t sum_add(uint32_t sum, const void *bytes, size_t len)
{
	const uint8_t *b = bytes;

	for (size_t i = 0; i < len; i++)
		sum += i % 2 ? b[i] : (uint32_t)b[i] << 8;
	return sum;
}

static uint16_t sum_end(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return htons((uint16_t)~sum);
}

static size_t ip_size(const struct address *a)
{
	return a->family == AF_INET6 ? 16 : 4;
}

/* Of TCP and UDP: over the addresses, the header and the body. */
static uint16_t sum_of(const struct packet *k)
{
	size_t len = k->head_len + k->len;
	uint32_t sum = sum_add(k->protocol, k->from.ip, ip_size(&k->from));

	sum = sum_add(sum, k->to.ip, ip_size(&k->to));
	sum += (uint32_t)(len & 0xffff);
	sum = sum_add(sum, k->head, k->head_len);
	return sum_end(sum_add(sum, k->body, k->have));
}

static void put16(uint8_t *to, uint32_t value)
{
	to[0] = (uint8_t)(value >> 8);
	to[1] = (uint8_t)value;
}

static void put32(uint8_t *to, uint32_t value)
{
	put16(to, value >> 16);
	put16(to + 2, value);
}

static size_t ip_head(const struct packet *k, uint8_t *to)
{
	size_t len = k->head_len + k->len;
	uint16_t sum;

	if (k->from.family == AF_INET6) {
		to[0] = 0x60;
		put16(to + 4, (uint32_t)len);
		to[6] = k->protocol;
		to[7] = TTL;
		memcpy(to + 8, k->from.ip, 16);
		memcpy(to + 24, k->to.ip, 16);
		return 40;
	}
	to[0] = 0x45;
	put16(to + 2, (uint32_t)len + 20);
	put16(to + 6, 0x4000);		/* not to be cut in pieces */
	to[8] = TTL;
	to[9] = k->protocol;
	memcpy(to + 12, k->from.ip, 4);
	memcpy(to + 16, k->to.ip, 4);
	sum = sum_end(sum_add(0, to, 20));
	memcpy(to + 10, &sum, sizeof(sum));
	return 20;
}

static void packet_write(struct pcap *p, const struct packet *k, uint64_t time_ns)
{
	uint8_t ip[40] = { 0 };
	size_t ip_len = ip_head(k, ip), all = ip_len + k->head_len;
	struct packet_head h;

	MUST(all + k->len <= PACKET_MOST && k->have <= k->len);
	p->time_ns = time_ns > p->time_ns ? time_ns : p->time_ns;
	h = (struct packet_head){ (uint32_t)(p->time_ns / 1000000000),
				  (uint32_t)(p->time_ns % 1000000000), (uint32_t)(all + k->have),
				  (uint32_t)(all + k->len) };
	fwrite(&h, sizeof(h), 1, p->file);
	fwrite(ip, ip_len, 1, p->file);
	fwrite(k->head, k->head_len, 1, p->file);
	if (k->have)
		fwrite(k->body, k->have, 1, p->file);
	p->packets++;
}

static struct packet packet_of(const struct conn *c, const struct address *peer, enum side from,
			       uint8_t protocol)
{
	struct address side[SIDES] = { [PEER] = *peer, [SERVER] = c->own };

	addresses_mend(&side[SERVER], &side[PEER], c->number);
	return (struct packet){ .from = side[from], .to = side[!from], .protocol = protocol };
}

/* --- a stream -------------------------------------------------------------------------------- */

static uint64_t min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void segment_write(struct pcap *p, const struct conn *c, enum side from, unsigned flags,
			  const struct conn_bytes *b, uint64_t at, uint64_t time_ns)
{
	/* The window is as large as it can be: what is not acknowledged at once fits. */
	static const uint8_t options[] = { 2, 4, 0xff, 0xd7, 1, 3, 3, 14 };
	struct packet k = packet_of(c, &c->peer, from, IPPROTO_TCP);
	struct flow *f = c->user;
	uint16_t sum;

	if (b) {
		k.len = min(b->len - at, SEGMENT);
		k.have = b->have > at ? min(b->have - at, k.len) : 0;
		k.body = b->bytes + at;
	}
	k.head_len = flags & SYN ? 20 + sizeof(options) : 20;
	put16(k.head, k.from.port);
	put16(k.head + 2, k.to.port);
	put32(k.head + 4, f->seq[from]);
	put32(k.head + 8, flags & ACK ? f->seq[!from] : 0);
	k.head[12] = (uint8_t)(k.head_len / 4 << 4);
	k.head[13] = (uint8_t)flags;
	put16(k.head + 14, 0xffff);
	if (flags & SYN)
		memcpy(k.head + 20, options, sizeof(options));
	sum = sum_of(&k);
	memcpy(k.head + 16, &sum, sizeof(sum));
	packet_write(p, &k, time_ns);
	f->seq[from] += (uint32_t)k.len + (flags & (SYN | FIN) ? 1 : 0);
}

/* It begins with its first packet: by then its addresses are known, if they ever are. */
static struct flow *flow_begin(struct pcap *p, struct conn *c)
{
	enum side first = c->came ? PEER : SERVER;
	struct flow *f = c->user;

	if (f)
		return f;
	f = c->user = calloc(1, sizeof(*f));
	MUST(f);
	segment_write(p, c, first, SYN, NULL, 0, c->began_ns);
	segment_write(p, c, !first, SYN | ACK, NULL, 0, c->began_ns);
	segment_write(p, c, first, ACK, NULL, 0, c->began_ns);
	return f;
}

static void stream_moved(struct pcap *p, const struct conn_bytes *b)
{
	enum side from = b->given ? SERVER : PEER;
	struct flow *f = flow_begin(p, b->conn);
	unsigned missing = 0;
	uint64_t at;

	for (at = 0; at < b->len && missing < MISSING_MOST; at += SEGMENT) {
		segment_write(p, b->conn, from, PSH | ACK, b, at, b->time_ns);
		missing += at >= b->have;
	}
	if (at < b->len)
		f->seq[from] += (uint32_t)(b->len - at);
}

static void side_over(struct pcap *p, struct conn *c, enum side side, uint64_t time_ns)
{
	struct flow *f = flow_begin(p, c);

	if (!f->over[side])
		segment_write(p, c, side, FIN | ACK, NULL, 0, time_ns);
	f->over[side] = true;
}

/* --- datagrams ------------------------------------------------------------------------- */

static void datagram_moved(struct pcap *p, const struct conn_bytes *b)
{
	struct packet k = packet_of(b->conn, b->peer, b->given ? SERVER : PEER, IPPROTO_UDP);
	uint16_t sum;

	k.len = min(b->len, DATAGRAM_MOST);
	k.have = min(b->have, k.len);
	k.body = b->bytes;
	k.head_len = 8;
	put16(k.head, k.from.port);
	put16(k.head + 2, k.to.port);
	put16(k.head + 4, (uint32_t)(k.head_len + k.len));
	sum = sum_of(&k);
	sum = sum ? sum : 0xffff;	/* 0 says that there is none */
	memcpy(k.head + 6, &sum, sizeof(sum));
	packet_write(p, &k, b->time_ns);
}

/* --- what conns.c calls --------------------------------------------------------------------- */

void pcap_moved(void *ctx, const struct conn_bytes *b)
{
	MUST(b->have <= b->len);
	if (b->conn->datagrams)
		datagram_moved(ctx, b);
	else
		stream_moved(ctx, b);
}

void pcap_peer_ended(void *ctx, struct conn *c, uint64_t time_ns)
{
	side_over(ctx, c, PEER, time_ns);
}

void pcap_ended(void *ctx, struct conn *c)
{
	if (!c->datagrams) {
		side_over(ctx, c, SERVER, c->ended_ns);
		side_over(ctx, c, PEER, c->ended_ns);
	}
	free(c->user);
	c->user = NULL;
}
