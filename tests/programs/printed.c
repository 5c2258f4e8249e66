/*
 * Two versions that differ as a rule says: printed WHAT [new].  Each WHAT is for a
 * rule that the papers print, or for a kind of right side; tests/rules/printed.sh
 * has the rules.  A version that is not served as its rule says fails a check, so
 * its end differs from the leader's.
 */
#include <linux/futex.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "check.h"

static bool new;
static int pair[2];

static long made(long nr, long a, long b, long c, long d)
{
	return syscall(nr, a, b, c, d, 0, 0);
}

/* The new version knows a command; where the old one leads, it must not. */
static void ftp(void)
{
	char text[64] = "";
	const char *reply = "500 Unknown command";

	CHECK_EQ(made(SYS_write, pair[0], (long)"SITE HELP\r\n", 11, 0), 11);
	CHECK_EQ(made(SYS_read, pair[1], (long)text, sizeof(text), 0), new ? 8 : 11);
	if (new && !strcmp(text, "SITE HELP\r\n"))
		reply = "214 SITE CHMOD UMASK HELP";
	made(SYS_write, pair[1], (long)reply, (long)strlen(reply), 0);
}

static void dup_seek(void)
{
	long fd;

	if (!new) {
		CHECK(made(SYS_open, (long)"/dev/zero", O_RDONLY, 0, 0) >= 0);
		return;
	}
	fd = made(SYS_dup, pair[0], 0, 0, 0);
	made(SYS_lseek, fd, 0, SEEK_SET, 0);
}

static void reorder(void)
{
	for (int i = 1; i <= 4; i++)
		made(SYS_rt_sigaction, new ? 5 - i : i, 0, 0, 8);
}

static void group(void)
{
	if (new)
		made(SYS_getpid, 0, 0, 0, 0);
	made(SYS_setuid, getuid(), 0, 0, 0);
	if (new)
		made(SYS_getppid, 0, 0, 0, 0);
}

static void skipped(void)
{
	char byte;
	long fd;

	if (new)
		return;
	fd = made(SYS_open, (long)"/etc/skip", O_RDONLY, 0, 0);
	made(SYS_read, fd, (long)&byte, 1, 0);
	made(SYS_close, fd, 0, 0, 0);
}

/* A file of the new version's own is nobody's, and its number none of the leader's. */
static void log_file(void)
{
	long fd = -1, next;

	if (new) {
		fd = made(SYS_open, (long)"log.txt", O_WRONLY | O_CREAT, 0600, 0);
		CHECK(fd >= 0);
		CHECK_EQ(made(SYS_write, fd, (long)"a line\n", 7, 0), 7);
	}
	next = made(SYS_open, (long)"/dev/null", O_RDONLY, 0, 0);
	CHECK(next >= 0 && next != fd);
	CHECK(access("log.txt", F_OK) < 0);
}

static void count(void)
{
	const char *text = new ? "accepted\n" : "ok\n";

	CHECK_EQ(made(SYS_write, 1, (long)text, (long)strlen(text), 0), (long)strlen(text));
}

static void *thread(void *unused)
{
	if (new) {
		long at = made(SYS_mmap, 0, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS);

		made(SYS_mprotect, at, 4096, PROT_READ, 0);
		made(SYS_mprotect, at, 4096, PROT_NONE, 0);
		made(SYS_munmap, at, 4096, 0, 0);
	}
	getuid();
	return unused;
}

static void begin(void)
{
	pthread_t t;

	CHECK_EQ(pthread_create(&t, NULL, thread, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
}

/* What is discarded has reached nobody. */
static void discard(void)
{
	char byte;

	if (new)
		CHECK_EQ(sendto(pair[0], "telemetry 1", 11, 0, NULL, 0), 11);
	CHECK(recv(pair[1], &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
}

static void positioned(void)
{
	char head[9] = "";
	long fd = made(SYS_open, (long)"/proc/self/auxv", O_RDONLY, 0, 0);

	close((int)fd);
	fd = made(SYS_open, (long)"/etc/passwd", O_RDONLY, 0, 0);
	CHECK(fd >= 0);
	CHECK_EQ(made(new ? SYS_pread64 : SYS_read, fd, (long)head, 8, 0), 8);
	CHECK(!memcmp(head, "root:", 5));
}

static void result(void)
{
	long fd = openat(AT_FDCWD, "/etc/passwd", O_RDONLY);

	CHECK(new ? fd < 0 && errno == EACCES : fd >= 0);
}

static void order(void)
{
	made(new ? SYS_getgid : SYS_getuid, 0, 0, 0, 0);
	made(new ? SYS_getuid : SYS_getgid, 0, 0, 0, 0);
}

/* The second call of the left side comes too late: it is as if there were no rule. */
static void within(void)
{
	char byte = 0;

	CHECK_EQ(made(SYS_write, pair[0], (long)"x", 1, 0), 1);
	CHECK_EQ(made(SYS_read, pair[1], (long)&byte, 1, 0), 1);
	CHECK_EQ(byte, 'x');
	usleep(400000);
	CHECK_EQ(made(SYS_write, pair[1], (long)"y", 1, 0), 1);
}

#define THREADS	4
#define TURNS	200

/* Each thread is at another place in its rule. */
static void *turns(void *arg)
{
	int fd = *(int *)arg;

	for (int i = 0; i < TURNS; i++) {
		made(SYS_write, fd, (long)(new ? "second" : "first"), new ? 6 : 5, 0);
		made(SYS_write, fd, (long)(new ? "first" : "second"), new ? 5 : 6, 0);
	}
	return NULL;
}

static void threads(void)
{
	int fd[THREADS];
	pthread_t t[THREADS];

	for (int i = 0; i < THREADS; i++) {
		fd[i] = open("/dev/null", O_WRONLY);
		CHECK(fd[i] >= 0);
	}
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, turns, &fd[i]), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
}

/* A rule that names a clock sees it, though the leader's reading is no event otherwise. */
static void a_clock(void)
{
	struct timespec ts;
	long n = made(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&ts, 0, 0);

	CHECK(new ? n < 0 && errno == EPERM : n == 0);
}

static void then(void)
{
	const char *text = new ? "anything" : "hello";

	CHECK_EQ(made(SYS_write, pair[0], (long)text, (long)strlen(text), 0), new ? 77 : 5);
}

static void regex(void)
{
	char text[64] = "";
	const char *set = new ? "SET a STRING 1\n" : "SET a 1\n";

	CHECK_EQ(made(SYS_write, pair[0], (long)"SET a 1\n", 8, 0), 8);
	CHECK_EQ(made(SYS_read, pair[1], (long)text, sizeof(text), 0), (long)strlen(set));
	CHECK(!strcmp(text, set));
}

/* Content in pieces, in and out. */
static void message(void)
{
	char a[4] = "", b[16] = "";
	struct iovec in[2] = { { a, 3 }, { b, sizeof(b) - 1 } };
	struct iovec out[2] = { { new ? "ne" : "o", new ? 2 : 1 }, { new ? "wer" : "ld", new ? 3 : 2 } };
	struct msghdr m = { .msg_iov = out, .msg_iovlen = 2 };

	CHECK_EQ(sendmsg(pair[0], &m, 0), new ? 5 : 3);
	CHECK_EQ(writev(pair[0], out, 2), new ? 5 : 3);
	m.msg_iov = in;
	CHECK_EQ(recvmsg(pair[1], &m, 0), new ? 7 : 6);
	CHECK(!strcmp(a, new ? "NEW" : "old") && !strcmp(b, new ? "TEXT" : "old"));
}

/* One version seeks and reads, the other looks at the file and reads there. */
static void seek(void)
{
	char text[4] = "";
	struct stat st;
	int fd = open("seek.txt", O_RDWR | O_CREAT | O_TRUNC, 0600);

	CHECK_EQ(made(SYS_write, fd, (long)"0123456", 7, 0), 7);
	if (new) {
		CHECK_EQ(made(SYS_lseek, fd, 2, SEEK_SET, 0), 2);
		CHECK_EQ(made(SYS_read, fd, (long)text, 3, 0), 3);
	} else {
		CHECK_EQ(made(SYS_fstat, fd, (long)&st, 0, 0), 0);
		CHECK_EQ(made(SYS_pread64, fd, (long)text, 3, 2), 3);
	}
	CHECK(!strcmp(text, "234"));
}

#define SLEEPS	0x1234	/* known by it in /proc/PID/syscall */

/* In the middle of a rule for so long that the rules can be replaced. */
static void halfway(void)
{
	struct timespec seconds = { 4, 0 };
	uint32_t word = SLEEPS;
	const char *text = new ? "new end\n" : "old end\n";
	long fd = new ? made(SYS_dup, pair[0], 0, 0, 0)
		      : made(SYS_open, (long)"/dev/zero", O_RDONLY, 0, 0);

	made(SYS_futex, (long)&word, FUTEX_WAIT, SLEEPS, (long)&seconds);
	if (new)
		made(SYS_lseek, fd, 0, SEEK_SET, 0);
	made(SYS_write, 1, (long)text, 8, 0);
}

static const struct {
	const char *name;
	void (*run)(void);
} parts[] = {
	{ "ftp", ftp }, { "dup", dup_seek }, { "reorder", reorder }, { "group", group },
	{ "skip", skipped }, { "log", log_file }, { "count", count }, { "begin", begin },
	{ "discard", discard }, { "pread", positioned }, { "result", result },
	{ "order", order }, { "within", within }, { "threads", threads }, { "clock", a_clock },
	{ "then", then }, { "regex", regex }, { "message", message },
	{ "seek", seek }, { "halfway", halfway },
};

int main(int argc, char **argv)
{
	new = argc > 2 && !strcmp(argv[2], "new");
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	for (size_t i = 0; argc > 1 && i < COUNT(parts); i++)
		if (!strcmp(parts[i].name, argv[1])) {
			parts[i].run();
			return passed("printed");
		}
	return 2;
}
