/*
 * What the kernel answers in memory, call by call: each is made with room that was
 * filled before, and all of the room is sent behind the call's result, so that a
 * follower that is told too little or too much differs at the first such byte.
 */
#include <arpa/inet.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <linux/fiemap.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/timex.h>
#include <sys/times.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/xattr.h>
#include <termios.h>

#include "tests/programs/check.h"

static int sink;
static char room[4096], more[512];

static void fill(void)
{
	memset(room, 0xa5, sizeof(room));
	memset(more, 0x5a, sizeof(more));
	errno = 0;
}

static long answered(const char *call, long result)
{
	struct { long result; int error, pad; } head = { result, errno, 0 };
	struct iovec all[] = { { (void *)call, strlen(call) }, { &head, sizeof(head) },
			       { room, sizeof(room) }, { more, sizeof(more) } };

	CHECK(writev(sink, all, COUNT(all)) > (long)sizeof(room));
	fill();
	return result;
}

/* The call is made with room that was filled; what came of it is sent. */
#define ANSWER(call) answered(#call, (long)(call))
#define GIVEN(type) ((type *)(void *)room)

static void sockets(void)
{
	static const int level[] = { SOL_SOCKET, IPPROTO_IP, IPPROTO_TCP };
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t *len = (socklen_t *)(void *)more, size = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM, 0), from = socket(AF_INET, SOCK_STREAM, 0), to;
	int pair[2];

	CHECK(!bind(fd, (void *)&a, size) && !listen(fd, 5) && !getsockname(fd, (void *)&a, &size));
	CHECK(!connect(from, (void *)&a, sizeof(a)));
	*len = 5;
	to = (int)ANSWER(accept4(fd, (void *)room, len, SOCK_CLOEXEC));
	CHECK(to >= 0);
	for (socklen_t room_len = 0; room_len < 40; room_len += 13) {
		*len = room_len;
		ANSWER(getsockname(to, (void *)room, len));
		*len = room_len;
		ANSWER(getpeername(to, (void *)room, len));
	}
	/* What no socket has, and what has no room, is answered as well. */
	for (int i = 0; i < 3; i++)
		for (int option = 0; option < 90; option++)
			for (socklen_t room_len = 1; room_len < 400; room_len *= 7) {
				*len = room_len;
				ANSWER(getsockopt(to, level[i], option, room, len));
			}
	CHECK_EQ(write(from, "some bytes", 10), 10);
	CHECK_EQ(poll(&(struct pollfd){ to, POLLIN, 0 }, 1, 5000), 1);
	ANSWER(ioctl(to, FIONREAD, room));
	ANSWER(ioctl(to, SIOCATMARK, room));
	ANSWER(ioctl(to, SIOCSPGRP, &(int){ getpid() }));
	ANSWER(ioctl(to, SIOCGPGRP, room));
	CHECK_EQ(ANSWER(recv(to, room, 4, MSG_PEEK | MSG_TRUNC)), 4);
	*len = 3;
	CHECK_EQ(ANSWER(recvfrom(to, room, 100, 0, (void *)(room + 200), len)), 10);
	CHECK(!ANSWER(socketpair(AF_UNIX, SOCK_DGRAM, 0, GIVEN(int))));
	CHECK(!socketpair(AF_UNIX, SOCK_DGRAM, 0, pair));
	*len = 12;
	CHECK(!ANSWER(getsockopt(pair[0], SOL_SOCKET, SO_PEERCRED, room, len)));
	*len = 100;
	CHECK(!ANSWER(getpeername(pair[0], (void *)room, len)));
	for (int option = 0; option < 90; option++)
		for (socklen_t room_len = 1; room_len < 400; room_len *= 7) {
			*len = room_len;
			ANSWER(getsockopt(pair[0], SOL_SOCKET, option, room, len));
		}
	close(pair[0]), close(pair[1]), close(fd), close(from), close(to);
}

static void files(void)
{
	struct stat s;
	struct iovec parts[] = { { room, 3 }, { room + 100, 0 }, { room + 200, 50 } };
	struct open_how how = { .flags = O_RDONLY };
	off64_t *at = (off64_t *)(void *)more;
	int dir = open(".", O_RDONLY | O_DIRECTORY), way[2];
	int fd = open("file", O_RDWR | O_CREAT | O_TRUNC, 0600), other, id;

	CHECK(dir >= 0 && fd >= 0 && write(fd, "some bytes of a file", 20) == 20);
	CHECK(!symlink("file", "link"));
	fill();
	CHECK(!ANSWER(stat("file", GIVEN(struct stat))));
	CHECK(!ANSWER(fstatat(dir, "link", GIVEN(struct stat), AT_SYMLINK_NOFOLLOW)));
	CHECK(!ANSWER(fstat(fd, GIVEN(struct stat))));
	CHECK(!ANSWER(statx(dir, "file", 0, STATX_ALL, GIVEN(struct statx))));
	CHECK(!ANSWER(statx(fd, "", AT_EMPTY_PATH, STATX_SIZE, GIVEN(struct statx))));
	CHECK(!ANSWER(syscall(SYS_statfs, "/", room)));
	CHECK(!ANSWER(syscall(SYS_fstatfs, fd, room)));
	CHECK(ANSWER(syscall(SYS_getdents64, dir, room, sizeof(room))) > 0);
	CHECK(!ANSWER(syscall(SYS_getdents64, dir, room, sizeof(room))));
	CHECK(!lseek(dir, 0, SEEK_SET));
	CHECK(ANSWER(syscall(SYS_getdents, dir, room, 100)) > 0);
	CHECK_EQ(ANSWER(readlink("link", room, 2)), 2);
	CHECK_EQ(ANSWER(readlinkat(dir, "link", room, 100)), 4);
	CHECK(ANSWER(syscall(SYS_getcwd, room, sizeof(room))) > 0);
	ANSWER(syscall(SYS_getcwd, room, 1));
	ANSWER(setxattr("file", "user.one", "value", 5, 0));
	ANSWER(getxattr("file", "user.one", room, 100));
	ANSWER(getxattr("file", "user.one", room, 2));
	ANSWER(getxattr("file", "user.one", NULL, 0));
	ANSWER(fgetxattr(fd, "user.two", room, 100));
	ANSWER(listxattr("file", room, 100));
	ANSWER(flistxattr(fd, NULL, 0));
	GIVEN(struct file_handle)->handle_bytes = 128;
	ANSWER(name_to_handle_at(dir, "file", GIVEN(struct file_handle), (int *)(void *)more, 0));
	GIVEN(struct file_handle)->handle_bytes = 0;
	ANSWER(name_to_handle_at(dir, "file", GIVEN(struct file_handle), (int *)(void *)more, 0));
	CHECK_EQ(ANSWER(pread(fd, room, 100, 5)), 15);
	CHECK_EQ(ANSWER(preadv(fd, parts, 3, 2)), 18);
	CHECK_EQ(ANSWER(preadv2(fd, parts, 2, 0, 0)), 3);
	CHECK_EQ(ANSWER(lseek(fd, -4, SEEK_END)), 16);
	CHECK_EQ(ANSWER(readv(fd, parts, 3)), 4);
	other = (int)syscall(SYS_openat2, dir, "file", &how, sizeof(how));
	CHECK(other >= 0);
	CHECK(!ANSWER(pipe2(GIVEN(int), O_CLOEXEC)));
	CHECK(!pipe(way));
	at[0] = 3;
	CHECK_EQ(ANSWER(sendfile(way[1], other, at, 5)), 5);
	at[0] = 1;
	CHECK_EQ(ANSWER(splice(other, at, way[1], NULL, 4, 0)), 4);
	CHECK_EQ(ANSWER(read(way[0], room, 100)), 9);
	at[0] = 0, at[1] = 30;
	ANSWER(copy_file_range(other, at, fd, at + 1, 7, 0));
	*GIVEN(struct flock) = (struct flock){ .l_type = F_WRLCK };
	CHECK(!ANSWER(fcntl(fd, F_GETLK, room)));
	*GIVEN(struct flock) = (struct flock){ .l_type = F_WRLCK };
	CHECK(!ANSWER(fcntl(fd, F_OFD_GETLK, room)));
	ANSWER(fcntl(way[0], F_GETPIPE_SZ));
	ANSWER(fcntl(way[0], F_GETOWN_EX, room));
	ANSWER(fcntl(fd, F_GET_RW_HINT, room));
	ANSWER(ioctl(fd, FIGETBSZ, room));
	ANSWER(ioctl(fd, _IOR('f', 1, long), room));	/* FS_IOC_GETFLAGS */
	ANSWER(ioctl(fd, TCGETS, room));
	*GIVEN(int) = 1;
	ANSWER(ioctl(way[0], FIONBIO, room));
	CHECK(!ANSWER(stat("/dev/null", &s)));
	id = inotify_init1(IN_NONBLOCK);
	CHECK(id >= 0 && inotify_add_watch(id, ".", IN_CREATE | IN_DELETE) > 0);
	CHECK(!unlink("link") && !unlink("file"));
	CHECK(ANSWER(read(id, room, sizeof(room))) > 0);
	close(id), close(way[0]), close(way[1]), close(other), close(fd), close(dir);
}

static void extents(void)
{
	struct fiemap *map = GIVEN(struct fiemap);
	int fd = open("extents", O_RDWR | O_CREAT, 0600);

	CHECK(fd >= 0 && !unlink("extents"));
	for (off_t at = 0; at < 10; at++)
		CHECK_EQ(pwrite(fd, "part", 4, at << 16), 4);
	fsync(fd);
	for (unsigned room_n = 0; room_n < 64; room_n = room_n * 5 + 3) {
		memset(room, 0, sizeof(*map));
		map->fm_length = FIEMAP_MAX_OFFSET;
		map->fm_extent_count = room_n;
		ANSWER(ioctl(fd, FS_IOC_FIEMAP, map));
	}
	close(fd);
}

static void filters(void)
{
	struct sock_filter lines[] = { { 0x28, 0, 0, 12 }, { 0x15, 0, 1, 8 }, { 6, 0, 0, 9 },
				       { 6, 0, 0, 0 } };
	struct sock_fprog program = { COUNT(lines), lines };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	socklen_t *len = (socklen_t *)(void *)more;

	CHECK(!setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)));
	fill();
	for (socklen_t room_n = 0; room_n < 10; room_n += 2) {
		*len = room_n;
		ANSWER(getsockopt(fd, SOL_SOCKET, SO_GET_FILTER, room, len));
	}
	ANSWER(ioctl(fd, 0x894b, room));	/* SIOCOUTQNSD */
	close(fd);
}

static void terminals(void)
{
	int fd = posix_openpt(O_RDWR | O_NOCTTY), zero = 0;

	if (fd < 0)
		return;
	fill();
	ANSWER(ioctl(fd, TIOCGPTN, room));
	ANSWER(ioctl(fd, TIOCSPTLCK, &zero));
	ANSWER(ioctl(fd, TCGETS, room));
	ANSWER(ioctl(fd, TIOCGWINSZ, room));
	ANSWER(ioctl(fd, TIOCOUTQ, room));
	ANSWER(ioctl(fd, TIOCGPGRP, room));
	ANSWER(ioctl(fd, TIOCGSID, room));
	ANSWER(ioctl(fd, _IOR('T', 0x2a, char[44]), room));	/* TCGETS2 */
	ANSWER(ioctl(fd, TIOCGETD, room));
	ANSWER(ioctl(fd, TCGETA, room));
	ANSWER(ioctl(fd, TIOCGLCKTRMIOS, room));
	close(fd);
}

static void waits(void)
{
	int way[2], timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK), ep = epoll_create1(0);
	struct epoll_event want = { .events = EPOLLIN, .data.u64 = 0x1122334455667788 };
	struct itimerspec soon = { { 0, 0 }, { 0, 1 } };
	int bell = eventfd(7, 0), signals;
	struct timespec *ts = (struct timespec *)(void *)more;
	sigset_t set;
	pid_t pid;

	CHECK(!pipe(way) && timer >= 0 && ep >= 0 && bell >= 0);
	fill();
	*ts = (struct timespec){ 1, 0 };
	memcpy(room, (struct pollfd[]){ { way[0], POLLIN, 0 }, { way[1], POLLOUT, 0 } }, 16);
	CHECK_EQ(ANSWER(syscall(SYS_ppoll, room, 2, ts, NULL, 8)), 1);
	*ts = (struct timespec){ 1, 0 };
	memset(room, 0, 8);
	FD_SET(way[1], GIVEN(fd_set));
	CHECK_EQ(ANSWER(syscall(SYS_select, way[1] + 1, NULL, room, NULL, NULL)), 1);
	memset(room, 0, 16);
	FD_SET(way[0], GIVEN(fd_set));
	*ts = (struct timespec){ 0, 1 };
	CHECK_EQ(ANSWER(syscall(SYS_pselect6, way[0] + 1, room, NULL, NULL, ts, NULL)), 0);
	CHECK(!epoll_ctl(ep, EPOLL_CTL_ADD, bell, &want));
	CHECK_EQ(ANSWER(epoll_wait(ep, GIVEN(struct epoll_event), 4, 1000)), 1);
	*ts = (struct timespec){ 1, 0 };
	ANSWER(syscall(SYS_epoll_pwait2, ep, room, 4, ts, NULL, 8));
	CHECK_EQ(ANSWER(read(bell, room, 8)), 8);
	CHECK(!timerfd_settime(timer, 0, &soon, GIVEN(struct itimerspec)));
	answered("settime", 0);
	CHECK(!ANSWER(timerfd_gettime(timer, GIVEN(struct itimerspec))));
	poll(&(struct pollfd){ timer, POLLIN, 0 }, 1, 1000);
	CHECK_EQ(ANSWER(read(timer, room, 8)), 8);
	sigemptyset(&set), sigaddset(&set, SIGUSR1), sigaddset(&set, SIGCHLD);
	CHECK(!sigprocmask(SIG_BLOCK, &set, NULL));
	signals = signalfd(-1, &set, 0);
	CHECK(signals >= 0 && !kill(getpid(), SIGUSR1));
	CHECK(!ANSWER(syscall(SYS_rt_sigpending, room, 8)));
	CHECK_EQ(ANSWER(read(signals, room, 128)), 128);
	CHECK(!kill(getpid(), SIGUSR1));
	*ts = (struct timespec){ 1, 0 };
	CHECK_EQ(ANSWER(syscall(SYS_rt_sigtimedwait, &set, room, ts, 8)), SIGUSR1);
	for (int i = 0; i < 2; i++) {
		pid = fork();
		if (!pid)
			_exit(3);
		if (i)
			CHECK_EQ(ANSWER(syscall(SYS_wait4, pid, room, 0, more)), pid);
		else
			CHECK(!ANSWER(syscall(SYS_waitid, P_PID, pid, room, WEXITED, more)));
	}
	*ts = (struct timespec){ 1, 0 };
	CHECK_EQ(ANSWER(syscall(SYS_rt_sigtimedwait, &set, room, ts, 8)), SIGCHLD);
	CHECK(!sigprocmask(SIG_UNBLOCK, &set, NULL));
	close(way[0]), close(way[1]), close(timer), close(ep), close(bell), close(signals);
}

static void machine(void)
{
	static const int resources[] = { RLIMIT_NOFILE, RLIMIT_CORE, RLIMIT_AS };
	int *cap = (int *)(void *)more;

	fill();
	CHECK(!ANSWER(syscall(SYS_uname, room)));
	CHECK(!ANSWER(syscall(SYS_sysinfo, room)));
	ANSWER(syscall(SYS_times, room));
	for (int who = -1; who <= 1; who++)
		CHECK(!ANSWER(syscall(SYS_getrusage, who, room)));
	for (unsigned i = 0; i < COUNT(resources); i++) {
		CHECK(!ANSWER(syscall(SYS_getrlimit, resources[i], room)));
		CHECK(!ANSWER(syscall(SYS_prlimit64, 0, resources[i], NULL, room)));
	}
	memset(room, 0, 208);
	ANSWER(syscall(SYS_adjtimex, room));
	for (int clock = 0; clock < 12; clock++) {
		ANSWER(syscall(SYS_clock_getres, clock, room));
		ANSWER(syscall(SYS_clock_gettime, clock, room));
	}
	ANSWER(syscall(SYS_gettimeofday, room, more));
	ANSWER(syscall(SYS_time, room));
	ANSWER(syscall(SYS_getcpu, room, more, NULL));
	ANSWER(syscall(SYS_getrandom, room, 100, 0));
	for (long bytes = 1; bytes < 300; bytes *= 2)
		ANSWER(syscall(SYS_sched_getaffinity, 0, bytes, room));
	ANSWER(syscall(SYS_sched_getparam, 0, room));
	ANSWER(syscall(SYS_sched_getscheduler, 0));
	ANSWER(syscall(SYS_sched_getattr, 0, room, 48, 0));
	ANSWER(syscall(SYS_sched_getattr, 0, room, 400, 0));
	ANSWER(syscall(SYS_sched_rr_get_interval, 0, room));
	ANSWER(syscall(SYS_getpriority, PRIO_PROCESS, 0));
	ANSWER(syscall(SYS_ioprio_get, 1, 0));
	ANSWER(syscall(SYS_get_mempolicy, room, more, 1024, NULL, 0));
	ANSWER(syscall(SYS_getgroups, 100, room));
	ANSWER(syscall(SYS_getgroups, 0, NULL));
	ANSWER(syscall(SYS_getresuid, room, room + 8, room + 16));
	ANSWER(syscall(SYS_getresgid, room, room + 8, room + 16));
	for (unsigned version = 0x19980330; version < 0x20100000; version += 0x20080522 - 0x19980330) {
		cap[0] = (int)version, cap[1] = 0;
		ANSWER(syscall(SYS_capget, more, room));
	}
	ANSWER(syscall(SYS_getitimer, ITIMER_REAL, room));
	ANSWER(syscall(SYS_sigaltstack, NULL, room));
	ANSWER(syscall(SYS_rt_sigaction, SIGUSR2, NULL, room, 8));
	ANSWER(syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, room, 8));
	ANSWER(syscall(SYS_getpgid, 0));
	ANSWER(syscall(SYS_getsid, 0));
}

static void processes(void)
{
	static const int numbers[] = { PR_GET_PDEATHSIG, PR_GET_CHILD_SUBREAPER, PR_GET_TSC,
				       PR_GET_ENDIAN, PR_GET_NAME, PR_GET_UNALIGN };
	static const int values[] = { PR_GET_DUMPABLE, PR_GET_KEEPCAPS, PR_GET_SECCOMP,
				      PR_GET_SECUREBITS, PR_GET_TIMERSLACK, PR_GET_NO_NEW_PRIVS,
				      PR_GET_THP_DISABLE, PR_GET_TIMING, PR_MCE_KILL_GET };

	fill();
	for (unsigned i = 0; i < COUNT(numbers); i++)
		ANSWER(syscall(SYS_prctl, numbers[i], room, 0, 0, 0));
	for (unsigned i = 0; i < COUNT(values); i++)
		ANSWER(syscall(SYS_prctl, values[i], 0, 0, 0, 0));
	for (int cap = 0; cap < 42; cap += 7)
		ANSWER(syscall(SYS_prctl, PR_CAPBSET_READ, cap, 0, 0, 0));
	ANSWER(syscall(SYS_prctl, PR_GET_SPECULATION_CTRL, 0, 0, 0, 0));
	ANSWER(syscall(SYS_arch_prctl, 0x1003, room) );	/* ARCH_GET_FS */
	ANSWER(syscall(SYS_getpid));
	ANSWER(syscall(SYS_gettid));
	ANSWER(syscall(SYS_getppid));
	ANSWER(syscall(SYS_kcmp, getpid(), getpid(), 2, 0, 0));
}

static void ipc(void)
{
	struct { long type; char text[20]; } m = { 5, "a message" };
	struct mq_attr attr = { .mq_maxmsg = 3, .mq_msgsize = 100 };
	int q = msgget(IPC_PRIVATE, 0600), s = semget(IPC_PRIVATE, 3, 0600);
	int shm = shmget(IPC_PRIVATE, 8192, 0600);
	char name[40];
	mqd_t mq;

	CHECK(q >= 0 && s >= 0 && shm >= 0 && !msgsnd(q, &m, 9, 0));
	fill();
	CHECK(!ANSWER(msgctl(q, IPC_STAT, (void *)room)));
	ANSWER(msgctl(q, IPC_INFO, (void *)room));
	ANSWER(msgctl(q, MSG_INFO, (void *)room));
	CHECK_EQ(ANSWER(msgrcv(q, room, 100, 0, 0)), 9);
	CHECK(!msgctl(q, IPC_RMID, NULL));
	CHECK(!ANSWER(semctl(s, 0, IPC_STAT, room)));
	CHECK(!semctl(s, 0, SETALL, (unsigned short[]){ 7, 8, 9 }));
	CHECK(!ANSWER(semctl(s, 0, GETALL, room)));
	ANSWER(semctl(s, 0, SEM_INFO, room));
	CHECK(!semctl(s, 0, IPC_RMID));
	CHECK(!ANSWER(shmctl(shm, IPC_STAT, (void *)room)));
	ANSWER(shmctl(shm, IPC_INFO, (void *)room));
	ANSWER(shmctl(shm, SHM_INFO, (void *)room));
	CHECK(!shmctl(shm, IPC_RMID, NULL));
	snprintf(name, sizeof(name), "/mve-answers-%d", (int)getpid());
	mq = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &attr);
	if (mq < 0)
		return;
	CHECK(!mq_unlink(name) && !mq_send(mq, "queued", 6, 2));
	CHECK(!ANSWER(mq_getattr(mq, (void *)room)));
	CHECK_EQ(ANSWER(mq_receive(mq, room, 200, (unsigned *)(void *)more)), 6);
	mq_close(mq);
}

#define KEYRING_PROCESS	(-2)

static long keyctl(int op, long key, void *to, size_t room_n)
{
	return syscall(SYS_keyctl, op, key, to, room_n, 0);
}

static void keys(void)
{
	long key = ANSWER(syscall(SYS_add_key, "user", "mve-answers", "content", 7,
				  KEYRING_PROCESS));

	fill();
	ANSWER(keyctl(6 /* describe */, key, room, sizeof(room)));
	ANSWER(keyctl(11 /* read */, key, room, sizeof(room)));
	ANSWER(keyctl(11, key, room, 3));
	ANSWER(keyctl(2 /* update */, key, "other", 5));
	ANSWER(keyctl(11, key, room, sizeof(room)));
	ANSWER(syscall(SYS_keyctl, 10 /* search */, KEYRING_PROCESS, "user", "mve-answers", 0));
}

static void namespaces(void)
{
	int fd = open("/proc/self/ns/net", O_RDONLY);

	CHECK(fd >= 0);
	ANSWER(ioctl(fd, 0xb703, 0));	/* NS_GET_NSTYPE */
	ANSWER(close((int)ANSWER(ioctl(fd, 0xb701, 0))));	/* NS_GET_USERNS */
	close(fd);
	fd = open("/proc/self/ns/user", O_RDONLY);
	ANSWER(ioctl(fd, 0xb704, room));	/* NS_GET_OWNER_UID */
	close(fd);
}

static void memory(void)
{
	char *pages = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct iovec mine = { room, 10 }, theirs = { pages, 10 };

	CHECK(pages != MAP_FAILED);
	strcpy(pages, "some bytes");
	fill();
	CHECK_EQ(ANSWER(process_vm_readv(getpid(), &mine, 1, &theirs, 1, 0)), 10);
	CHECK(!munmap(pages, 1 << 16));
}

/* What a call of a version's own names is its own thread, by whichever id. */
static void robust(void)
{
	void *by_zero = NULL, *by_id = NULL;
	size_t len = 0;

	CHECK(!syscall(SYS_get_robust_list, 0, &by_zero, &len));
	CHECK(!syscall(SYS_get_robust_list, gettid(), &by_id, &len));
	CHECK(by_id == by_zero);
}

int main(void)
{
	sink = open("/dev/null", O_WRONLY);
	CHECK(sink >= 0);
	sockets();
	files();
	extents();
	filters();
	terminals();
	waits();
	machine();
	processes();
	ipc();
	keys();
	namespaces();
	memory();
	robust();
	return passed("answers");
}
