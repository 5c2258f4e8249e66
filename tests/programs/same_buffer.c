/*
 * Calls that are answered where they send from: sigprocmask(how, &s, &s) and all their
 * kind.  What was sent is what stood there before the call, for a leader that tells it and
 * for a follower that is answered.  All of the room is printed behind the call.
 */
/* That is what it is about. */
#pragma GCC diagnostic ignored "-Wrestrict"

#include <mqueue.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/xattr.h>

#include "tests/programs/check.h"

static union {
	char bytes[4096];
	uint64_t set;
	long word[512];
	struct itimerval interval;
	struct itimerspec spec;
	struct timespec time;
	struct rlimit limit;
	struct mq_attr attr;
} room;

static void said(const char *call, long result)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < sizeof(room); i++)
		sum = sum * 31 + (unsigned char)room.bytes[i];
	printf("%s: %ld %u\n", call, result, sum);
	memset(&room, 0, sizeof(room));
}

#define SAID(call) said(#call, call)

static void masks(void)
{
	struct { void *handler; long flags; void *restorer; uint64_t mask; } *act =
		(void *)room.bytes;

	for (int i = 0; i < 4; i++) {
		room.set = 0x200u << i;
		SAID(raw4(SYS_rt_sigprocmask, i & 1 ? SIG_BLOCK : SIG_SETMASK, &room, &room, 8));
	}
	act->flags = SA_RESTART;
	act->handler = SIG_IGN;
	SAID(raw4(SYS_rt_sigaction, SIGUSR2, act, act, 8));
	act->handler = SIG_DFL;
	SAID(raw4(SYS_rt_sigaction, SIGUSR2, act, act, 8));
	room.set = 0;
	SAID(raw4(SYS_rt_sigprocmask, SIG_SETMASK, &room, &room, 8));
}

static void blocked(void)
{
	room.set = 1u << (SIGUSR1 - 1);
	CHECK(!raw4(SYS_rt_sigprocmask, SIG_BLOCK, &room, NULL, 8));
	CHECK(!kill(getpid(), SIGUSR1));
	CHECK_EQ(raw4(SYS_rt_sigtimedwait, &room, &room, NULL, 8), SIGUSR1);
	memset(&room, 0, sizeof(room));
	CHECK(!raw4(SYS_rt_sigprocmask, SIG_SETMASK, &room, NULL, 8));
}

static void timers(void)
{
	int fd = timerfd_create(CLOCK_MONOTONIC, 0);
	struct sigevent none = { .sigev_notify = SIGEV_NONE };
	timer_t timer;

	CHECK(fd >= 0 && !timer_create(CLOCK_MONOTONIC, &none, &timer));
	for (int i = 0; i < 3; i++) {
		room.interval = (struct itimerval){ { 0, 0 }, { 1000 + i, 0 } };
		CHECK(!setitimer(ITIMER_REAL, &room.interval, &room.interval));
		room.spec = (struct itimerspec){ { 0, 0 }, { 2000 + i, 0 } };
		CHECK(!timer_settime(timer, 0, &room.spec, &room.spec));
		room.spec = (struct itimerspec){ { 0, 0 }, { 3000 + i, 0 } };
		CHECK(!timerfd_settime(fd, 0, &room.spec, &room.spec));
	}
	CHECK(room.spec.it_value.tv_sec > 2900);
	memset(&room, 0, sizeof(room));
	SAID(raw3(SYS_setitimer, ITIMER_REAL, &room, NULL));
	room.time.tv_nsec = 1000;
	SAID(raw3(SYS_nanosleep, &room, &room, 0));
	timer_delete(timer);
	close(fd);
}

static void limits(void)
{
	for (int i = 0; i < 3; i++) {
		room.limit = (struct rlimit){ 100 - (unsigned)i, 4096 };
		SAID(raw4(SYS_prlimit64, 0, RLIMIT_CORE, &room, &room));
	}
}

static void paths(void)
{
	CHECK(!symlink("to somewhere far away", "way") && !mkdir("folder", 0700));
	strcpy(room.bytes, "way");
	SAID(readlink(room.bytes, room.bytes, 100));
	strcpy(room.bytes + 1, "way");
	SAID(readlink(room.bytes + 1, room.bytes, 100));
	strcpy(room.bytes, "folder");
	CHECK(!raw3(SYS_stat, room.bytes, room.bytes, 0));
	strcpy(room.bytes, "folder");
	CHECK(!raw6(SYS_statx, AT_FDCWD, (long)room.bytes, 0, 0x7ff, (long)room.bytes, 0));
	strcpy(room.bytes, "folder");
	CHECK(!raw4(SYS_newfstatat, AT_FDCWD, room.bytes, room.bytes, 0));
	memset(&room, 0, sizeof(room));
	strcpy(room.bytes, "user.name");
	if (!setxattr("folder", "user.name", "its value", 9, 0))
		SAID(getxattr("folder", room.bytes, room.bytes, 100));
	memset(&room, 0, sizeof(room));
	CHECK(!unlink("way") && !rmdir("folder"));
}

static void others(void)
{
	struct mq_attr attr = { .mq_maxmsg = 3, .mq_msgsize = 100 };
	int ep = epoll_create1(0), way[2];
	struct epoll_event e = { .events = EPOLLIN };
	char name[40];
	mqd_t mq;

	CHECK(ep >= 0 && !pipe(way) && !epoll_ctl(ep, EPOLL_CTL_ADD, way[0], &e));
	CHECK_EQ(write(way[1], "x", 1), 1);
	room.set = 0x200;
	CHECK_EQ(raw6(SYS_epoll_pwait, ep, (long)&room, 2, 1000, (long)&room, 8), 1);
	/* No mask: its length means nothing. */
	CHECK_EQ(raw6(SYS_epoll_pwait, ep, (long)&room, 2, 1000, 0, 77), 1);
	room.time.tv_sec = 1;
	CHECK_EQ(raw6(SYS_epoll_pwait2, ep, (long)&room, 2, (long)&room, 0, 8), 1);
	memset(&room, 0, sizeof(room));
	snprintf(name, sizeof(name), "/mve-same-%d", (int)getpid());
	mq = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &attr);
	if (mq < 0)
		return;
	CHECK(!mq_unlink(name));
	for (int i = 0; i < 3; i++) {
		room.attr.mq_flags = i & 1 ? 0 : O_NONBLOCK;
		SAID(raw3(SYS_mq_getsetattr, mq, &room, &room));
	}
}

int main(void)
{
	masks();
	blocked();
	timers();
	limits();
	paths();
	others();
	return passed("same_buffer");
}
