/*
 * Calls whose memory is not all behind an argument, or whose request says how much there
 * is: interfaces by SIOCGIFCONF, requests of ioctl without a row of their own.  What they
 * answer is sent, so a follower that was not told it would differ.
 */
#include <linux/random.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <sys/ioctl.h>
#include <sys/sem.h>
#include <sys/socket.h>

#include "tests/programs/check.h"

#define RESERVED	8

static int sink;

static void told(const void *bytes, size_t n)
{
	CHECK(write(sink, bytes, n) == (ssize_t)n);
}

static void interfaces(int fd)
{
	struct ifconf c = { .ifc_len = 0 };
	struct ifreq r[RESERVED];

	CHECK(!ioctl(fd, SIOCGIFCONF, &c) && c.ifc_len >= (int)sizeof(r[0]));
	told(&c.ifc_len, sizeof(c.ifc_len));
	memset(r, 0x55, sizeof(r));
	c.ifc_len = sizeof(r);
	c.ifc_req = r;
	CHECK(!ioctl(fd, SIOCGIFCONF, &c) && c.ifc_len % (int)sizeof(r[0]) == 0);
	told(r, sizeof(r));
	memset(&r[1], 0x55, sizeof(r[1]));
	c.ifc_len = sizeof(r[0]);
	CHECK(!ioctl(fd, SIOCGIFCONF, &c) && c.ifc_len == sizeof(r[0]));
	told(r, sizeof(r));
	memset(&r[0], 0, sizeof(r[0]));
	strcpy(r[0].ifr_name, "lo");
	CHECK(!ioctl(fd, SIOCGIFTXQLEN, &r[0]));
	told(&r[0].ifr_qlen, sizeof(r[0].ifr_qlen));
}

static void arp(int fd)
{
	struct arpreq a = { .arp_dev = "lo" };

	a.arp_pa.sa_family = AF_INET;
	CHECK(ioctl(fd, SIOCGARP, &a) == -1);
	printf("arp: %s\n", strerror(errno));
}

static void sized(void)
{
	int fd = open("/dev/urandom", O_RDONLY), bits = -1;

	CHECK(fd >= 0 && !ioctl(fd, RNDGETENTCNT, &bits) && bits >= 0);
	told(&bits, sizeof(bits));
	CHECK(ioctl(fd, _IOR('v', 77, char[100]), &bits) == -1);
}

static void semaphores(void)
{
	int id = semget(IPC_PRIVATE, 2, 0600);
	union { int val; unsigned short *all; } arg = { .val = 3 };

	CHECK(id >= 0 && !semctl(id, 1, SETVAL, arg));
	CHECK(semctl(id, 1, GETVAL) == 3 && !semctl(id, 0, GETZCNT));
	CHECK(!semctl(id, 0, IPC_RMID));
}

int main(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	sink = open("/dev/null", O_WRONLY);
	CHECK(fd >= 0 && sink >= 0);
	interfaces(fd);
	arp(fd);
	sized();
	semaphores();
	return passed("nested");
}
