/*
 * A version that asks more of its descriptors than its leader does (it has a second argument): what it is told
 * is what the leader would have been.  It holds none of them itself.
 */
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/timerfd.h>

#include "tests/programs/check.h"

static void ask_socket(int fd, int port)
{
	struct sockaddr_in a = { 0 };
	socklen_t n = sizeof(a), size = 4;
	int value = 0, waiting = 0;
	struct stat st;

	CHECK(!fstat(fd, &st) && S_ISSOCK(st.st_mode));
	CHECK(fcntl(fd, F_GETFL) & O_NONBLOCK);
	CHECK_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
	CHECK(!getsockname(fd, (void *)&a, &n) && n == sizeof(a) && ntohs(a.sin_port) == port);
	CHECK(!getsockopt(fd, SOL_SOCKET, SO_TYPE, &value, &size) && value == SOCK_DGRAM);
	CHECK(!ioctl(fd, FIONREAD, &waiting) && waiting == 4);
	CHECK_FAILS(getpeername(fd, (void *)&a, &n), ENOTCONN);
}

static void ask_file(int fd, int dir)
{
	struct statfs fs;
	struct statx x;
	struct stat st;

	CHECK(!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size == 7);
	CHECK(!statx(fd, "", AT_EMPTY_PATH, STATX_SIZE, &x) && x.stx_size == 7);
	CHECK_EQ(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDWR);
	CHECK(!fstatat(dir, "file", &st, 0) && st.st_size == 7);
	CHECK(!faccessat(dir, "file", R_OK, 0));
	CHECK_FAILS(faccessat(dir, "nothing", R_OK, 0), ENOENT);
	CHECK(!fstatfs(dir, &fs));
}

static void ask_others(int timer, int closed, const int *way)
{
	struct itimerspec left;
	struct stat st;

	CHECK(!timerfd_gettime(timer, &left) && left.it_value.tv_sec > 900);
	CHECK(fcntl(way[0], F_GETPIPE_SZ) >= 4096);
	CHECK(!fstat(way[1], &st) && S_ISFIFO(st.st_mode));
	CHECK_FAILS(fcntl(closed, F_GETFL), EBADF);
}

int main(int argc, char **argv)
{
	bool more = argc > 2;
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), file, dir, way[2];
	int timer = timerfd_create(CLOCK_MONOTONIC, 0), closed = dup(fd);
	struct itimerspec late = { { 0, 0 }, { 1000, 0 } };
	socklen_t n = sizeof(a);

	CHECK(fd >= 0 && !bind(fd, (void *)&a, n) && !getsockname(fd, (void *)&a, &n));
	CHECK_EQ(sendto(fd, "four", 4, 0, (void *)&a, n), 4);
	CHECK(!mkdir("folder", 0700) && (dir = open("folder", O_RDONLY | O_DIRECTORY)) >= 0);
	file = openat(dir, "file", O_RDWR | O_CREAT, 0600);
	CHECK_EQ(write(file, "content", 7), 7);
	CHECK(!timerfd_settime(timer, 0, &late, NULL) && !pipe(way));
	close(closed);
	if (more) {
		ask_socket(fd, ntohs(a.sin_port));
		ask_file(file, dir);
		ask_others(timer, closed, way);
	}
	/* So that it can be seen from outside that both have come so far. */
	CHECK(!prctl(PR_SET_NAME, argv[1]));
	CHECK_EQ(read(0, &a, 1), 0);
	CHECK(!unlinkat(dir, "file", 0) && !rmdir("folder"));
	return passed("own_query");
}
