/*
 * Messages: what the kernel says of each, in structures that other structures lead to:
 * how much was moved, from whom, with which flags and control data.  All of it is
 * sent, pads and untouched bytes too, so that a follower that was not told would differ.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "tests/programs/check.h"

#define MESSAGES	4
#define ROOM		24	/* bytes of each message; some are longer */

/* As many messages as one call takes, and all that they lead to. */
static struct room {
	struct mmsghdr m[MESSAGES];
	struct iovec part[MESSAGES][2];
	char bytes[MESSAGES][ROOM];
	char control[MESSAGES][128];
	struct sockaddr_storage from[MESSAGES];
	struct timespec wait;
} room;

static int sink;

static void told(const void *bytes, size_t n)
{
	CHECK_EQ(write(sink, bytes, n), n);
}

static void room_ready(void)
{
	memset(&room, 0xa5, sizeof(room));
	room.wait = (struct timespec){ 5, 0 };
	for (int i = 0; i < MESSAGES; i++) {
		room.part[i][0] = (struct iovec){ room.bytes[i], 5 };
		room.part[i][1] = (struct iovec){ room.bytes[i] + 5, ROOM - 5 };
		room.m[i].msg_hdr = (struct msghdr){
			.msg_name = &room.from[i], .msg_namelen = sizeof(room.from[i]),
			.msg_iov = room.part[i], .msg_iovlen = 2,
			.msg_control = room.control[i], .msg_controllen = sizeof(room.control[i]),
			.msg_flags = 0x55,
		};
	}
}

/* sendmmsg() says how much it sent of each. */
static void send_all(int fd, const struct sockaddr *to, socklen_t to_len)
{
	static char text[] = "one message, another, and a third that is longer";
	struct iovec part[MESSAGES][2];
	struct mmsghdr m[MESSAGES];

	memset(m, 0x5a, sizeof(m));
	for (unsigned i = 0; i < MESSAGES; i++) {
		part[i][0] = (struct iovec){ text, i * 3 };
		part[i][1] = (struct iovec){ text + 7, 2 + i * 8 };
		m[i].msg_hdr = (struct msghdr){ .msg_iov = part[i], .msg_iovlen = 2,
						.msg_name = (void *)to, .msg_namelen = to_len };
	}
	CHECK_EQ(sendmmsg(fd, m, MESSAGES, 0), MESSAGES);
	for (unsigned i = 0; i < MESSAGES; i++)
		CHECK_EQ(m[i].msg_len, 2 + i * 11);
	told(m, sizeof(m));
}

static void receive_all(int fd)
{
	room_ready();
	CHECK_EQ(recvmmsg(fd, room.m, MESSAGES, MSG_WAITFORONE, &room.wait), MESSAGES);
	for (unsigned i = 0; i < MESSAGES; i++) {
		CHECK_EQ(room.m[i].msg_len, 2 + i * 11 < ROOM ? 2 + i * 11 : ROOM);
		CHECK_EQ(room.m[i].msg_hdr.msg_flags & MSG_TRUNC, i > 2 ? MSG_TRUNC : 0);
	}
	told(&room, sizeof(room));
	CHECK_FAILS(recvmmsg(fd, room.m, MESSAGES, MSG_DONTWAIT, NULL), EAGAIN);
	told(&room, sizeof(room));
}

static void datagrams(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);
	int to = socket(AF_INET, SOCK_DGRAM, 0), from = socket(AF_INET, SOCK_DGRAM, 0), on = 1;

	CHECK(!bind(to, (struct sockaddr *)&a, len) && !getsockname(to, (struct sockaddr *)&a, &len));
	CHECK(!setsockopt(to, IPPROTO_IP, IP_PKTINFO, &on, sizeof(on)));
	CHECK(!setsockopt(to, SOL_SOCKET, SO_TIMESTAMP, &on, sizeof(on)));
	send_all(from, (struct sockaddr *)&a, len);
	receive_all(to);
	CHECK(!connect(from, (struct sockaddr *)&a, len));
	send_all(from, NULL, 0);
	receive_all(to);
	/* Looked at only, with more bytes than there is room for. */
	CHECK_EQ(send(from, "twelve bytes", 12, 0), 12);
	room_ready();
	room.m[0].msg_hdr.msg_iovlen = 1;
	room.m[0].msg_hdr.msg_controllen = 8;
	CHECK_EQ(recvmsg(to, &room.m[0].msg_hdr, MSG_PEEK | MSG_TRUNC), 12);
	CHECK_EQ(room.m[0].msg_hdr.msg_flags & (MSG_TRUNC | MSG_CTRUNC), MSG_TRUNC | MSG_CTRUNC);
	told(&room, sizeof(room));
	room_ready();
	len = 6;	/* of an address that is longer */
	CHECK_EQ(recvfrom(to, room.bytes, 7, 0, (struct sockaddr *)room.from, &len), 7);
	CHECK_EQ(len, sizeof(a));
	told(&room, sizeof(room));
	close(from);
	close(to);
}

/* A descriptor and credentials in a message; the descriptor works. */
static void rights(void)
{
	union { char bytes[CMSG_SPACE(sizeof(int))]; struct cmsghdr first; } c;
	struct msghdr m = { .msg_iov = &(struct iovec){ "x", 1 }, .msg_iovlen = 1,
			    .msg_control = &c, .msg_controllen = sizeof(c) };
	int pair[2], on = 1, way[2], got = -1;
	struct cmsghdr *h;

	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair) && !pipe(way));
	CHECK(!setsockopt(pair[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)));
	memset(&c, 0, sizeof(c));
	c.first = (struct cmsghdr){ CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS };
	memcpy(CMSG_DATA(&c.first), &way[1], sizeof(int));
	CHECK_EQ(sendmsg(pair[0], &m, 0), 1);
	room_ready();
	CHECK_EQ(recvmsg(pair[1], &room.m[0].msg_hdr, MSG_CMSG_CLOEXEC), 1);
	told(&room, sizeof(room));
	for (h = CMSG_FIRSTHDR(&room.m[0].msg_hdr); h; h = CMSG_NXTHDR(&room.m[0].msg_hdr, h))
		if (h->cmsg_type == SCM_RIGHTS)
			memcpy(&got, CMSG_DATA(h), sizeof(got));
	CHECK(got > way[1] && write(got, "through", 7) == 7);
	CHECK_EQ(read(way[0], room.bytes, sizeof(room.bytes)), 7);
	told(room.bytes, 7);
	for (int i = 0; i < 2; i++)
		close(pair[i]), close(way[i]);
	close(got);
}

/* Of a stream, the last message may be sent in part. */
static void partly(void)
{
	static char much[1 << 20];
	struct iovec part[2] = { { much, 10 }, { much, sizeof(much) } };
	struct mmsghdr m[2] = { { .msg_hdr = { .msg_iov = &part[0], .msg_iovlen = 1 } },
				{ .msg_hdr = { .msg_iov = &part[1], .msg_iovlen = 1 } } };
	int pair[2];

	CHECK(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair));
	CHECK_EQ(sendmmsg(pair[0], m, 2, 0), 2);
	CHECK(m[0].msg_len == 10 && m[1].msg_len > 0 && m[1].msg_len < sizeof(much));
	told(m, sizeof(m));
	close(pair[0]);
	close(pair[1]);
}

int main(void)
{
	sink = open("/dev/null", O_WRONLY);
	CHECK(sink >= 0);
	datagrams();
	rights();
	partly();
	return passed("messages");
}
