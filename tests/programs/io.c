/*
 * Input and output of every kind: files, pipes, sockets, passed descriptors,
 * epoll, eventfd, timerfd, splice, sendfile, copy_file_range, large vectors,
 * non-blocking calls; io_uring, which may be absent.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include "check.h"

static char block[1 << 16], copy[1 << 16];

static void files(void)
{
	int fd = open("data", O_RDWR | O_CREAT | O_TRUNC, 0640);
	struct stat st;

	for (int i = 0; i < 16; i++)
		CHECK_EQ(write(fd, block, sizeof(block)), sizeof(block));
	CHECK_EQ(fstat(fd, &st), 0);
	CHECK_EQ(st.st_size, 16 * sizeof(block));
	CHECK_EQ(st.st_mode & 0777, 0640);
	CHECK_EQ(pread(fd, copy, 100, 65536 * 3 + 17), 100);
	CHECK(!memcmp(copy, block + 17, 100));
	CHECK_EQ(lseek(fd, -10, SEEK_END), 16 * sizeof(block) - 10);
	CHECK_EQ(read(fd, copy, 100), 10);
	CHECK_EQ(ftruncate(fd, 5), 0);
	CHECK_EQ(rename("data", "data2"), 0);
	CHECK_FAILS(open("data", O_RDONLY), ENOENT);
	CHECK_EQ(unlink("data2"), 0);
	CHECK_EQ(fstat(fd, &st), 0);
	CHECK_EQ(st.st_nlink, 0);
	close(fd);
}

static void vectors(void)
{
	struct iovec iov[1025] = { 0 };
	int fd = memfd_create("iov", 0);

	for (int i = 0; i < 1024; i++)
		iov[i] = (struct iovec){ block + 64 * i, 64 };
	CHECK_EQ(writev(fd, iov, 1024), sizeof(block));
	CHECK_FAILS(writev(fd, iov, 1025), EINVAL);
	for (int i = 0; i < 1024; i++)
		iov[i].iov_base = copy + 64 * i;
	CHECK_EQ(preadv(fd, iov, 1024, 0), sizeof(block));
	CHECK(!memcmp(block, copy, sizeof(block)));
	close(fd);
}

static int listener(struct sockaddr_in *at)
{
	socklen_t size = sizeof(*at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*at = (struct sockaddr_in){ .sin_family = AF_INET };
	at->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK_EQ(bind(fd, (struct sockaddr *)at, size), 0);
	CHECK_EQ(listen(fd, 16), 0);
	CHECK_EQ(getsockname(fd, (struct sockaddr *)at, &size), 0);
	return fd;
}

static void echo(int server)
{
	for (int i = 0; i < 50; i++) {
		char c;
		int fd = accept4(server, NULL, NULL, SOCK_CLOEXEC);
		while (read(fd, &c, 1) == 1)
			CHECK_EQ(write(fd, &c, 1), 1);
		close(fd);
	}
	_exit(0);
}

static void tcp(void)
{
	struct sockaddr_in at;
	int server = listener(&at);
	pid_t pid = fork();
	char back[6] = "";

	if (!pid)
		echo(server);
	for (int i = 0; i < 50; i++) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);
		CHECK_EQ(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
		CHECK_EQ(send(fd, "hello", 5, MSG_NOSIGNAL), 5);
		CHECK_EQ(recv(fd, back, 5, MSG_WAITALL), 5);
		CHECK(!strcmp(back, "hello"));
		close(fd);
	}
	CHECK_EQ(status_of(pid), 0);
	close(server);
}

static void pass_descriptor(void)
{
	int pair[2], fd = memfd_create("passed", 0);
	char byte = 'x', control[CMSG_SPACE(sizeof(int))] = "";
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	CHECK_EQ(write(fd, "inside", 6), 6);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cmsg), &fd, sizeof(int));
	CHECK_EQ(sendmsg(pair[0], &msg, 0), 1);
	close(fd);
	memset(control, 0, sizeof(control));
	CHECK_EQ(recvmsg(pair[1], &msg, MSG_CMSG_CLOEXEC), 1);
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(int));
	CHECK_EQ(pread(fd, copy, 6, 0), 6);
	CHECK(!memcmp(copy, "inside", 6));
	CHECK_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
	close(fd);
	close(pair[0]);
	close(pair[1]);
}

static void event_loop(void)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC), event = eventfd(0, EFD_NONBLOCK);
	int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
	struct itimerspec soon = { { 0, 1000000 }, { 0, 1000000 } };
	struct epoll_event e = { EPOLLIN, { .u64 = 0x1122334455667788 } };
	uint64_t n = 3;

	CHECK_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, event, &e), 0);
	CHECK_FAILS(epoll_ctl(epoll, EPOLL_CTL_ADD, event, &e), EEXIST);
	CHECK_EQ(epoll_wait(epoll, &e, 1, 0), 0);
	CHECK_EQ(write(event, &n, 8), 8);
	CHECK_EQ(epoll_wait(epoll, &e, 1, 1000), 1);
	CHECK_EQ(e.data.u64, 0x1122334455667788);
	CHECK_EQ(read(event, &n, 8), 8);
	CHECK_EQ(n, 3);
	CHECK_FAILS(read(event, &n, 8), EAGAIN);
	e.data.ptr = &soon;
	CHECK_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, timer, &e), 0);
	CHECK_EQ(timerfd_settime(timer, 0, &soon, NULL), 0);
	for (int i = 0; i < 20; i++) {
		CHECK_EQ(epoll_wait(epoll, &e, 1, 1000), 1);
		CHECK(e.data.ptr == &soon);
		CHECK_EQ(read(timer, &n, 8), 8);
	}
	close(epoll);
	close(event);
	close(timer);
}

static void moving(void)
{
	int from = memfd_create("from", 0), to = memfd_create("to", 0), pipe_fds[2];
	off_t off = 0;
	loff_t in = 100, out = 0;

	CHECK_EQ(pipe(pipe_fds), 0);
	CHECK_EQ(write(from, block, sizeof(block)), sizeof(block));
	CHECK_EQ(sendfile(to, from, &off, sizeof(block)), sizeof(block));
	CHECK_EQ(off, sizeof(block));
	CHECK_EQ(splice(from, &in, pipe_fds[1], NULL, 1000, 0), 1000);
	CHECK_EQ(in, 1100);
	CHECK_EQ(splice(pipe_fds[0], NULL, to, &out, 1000, 0), 1000);
	CHECK_EQ(pread(to, copy, 1000, 0), 1000);
	CHECK(!memcmp(copy, block + 100, 1000));
	in = 7;
	out = 11;
	CHECK_EQ(copy_file_range(from, &in, to, &out, 500, 0), 500);
	CHECK(in == 507 && out == 511);
	CHECK_EQ(pread(to, copy, 500, 11), 500);
	CHECK(!memcmp(copy, block + 7, 500));
	struct iovec iov = { block, 4096 };
	CHECK_EQ(vmsplice(pipe_fds[1], &iov, 1, 0), 4096);
	CHECK_EQ(read(pipe_fds[0], copy, 4096), 4096);
	CHECK(!memcmp(copy, block, 4096));
	close(from);
	close(to);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
}

static void watching(void)
{
	int fd = inotify_init1(IN_NONBLOCK);
	struct inotify_event *e = (void *)copy;

	CHECK(inotify_add_watch(fd, ".", IN_CREATE) >= 0);
	close(open("seen", O_WRONLY | O_CREAT, 0600));
	CHECK(read(fd, copy, sizeof(copy)) > 0);
	CHECK(!strcmp(e->name, "seen"));
	unlink("seen");
	close(fd);
}

static void uring(void)
{
	char params[120] = "";
	long fd = raw3(SYS_io_uring_setup, 4, params, 0);

	if (fd >= 0)
		close(fd);
	else
		CHECK(fd == -ENOSYS || fd == -EPERM);
	CHECK(raw3(SYS_io_uring_setup, 4, 8, 0) < 0);
}

int main(void)
{
	for (size_t i = 0; i < sizeof(block); i++)
		block[i] = i * 7 + i / 251;
	for (int i = 0; i < 10; i++) {
		files();
		vectors();
		pass_descriptor();
		event_loop();
		moving();
		watching();
	}
	tcp();
	uring();
	return passed("io");
}
