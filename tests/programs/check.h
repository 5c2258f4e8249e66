/*
 * What every test program shares.  A program checks what it sees against what
 * the kernel must do, and prints "NAME: ok" as its last line: leaving early
 * with status 0 does not pass.  A failed check says where, and ends the
 * process with status 1; in a child, its parent sees that status.
 */
#ifndef CHECK_H
#define CHECK_H

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define UNUSED		__attribute__((unused))
#define COUNT(array)	(sizeof(array) / sizeof((array)[0]))

#define CHECK(cond) do {						\
	if (!(cond))							\
		check_failed(__FILE__, __LINE__, #cond);		\
} while (0)

#define CHECK_EQ(a, b) do {						\
	long a_ = (long)(a), b_ = (long)(b);				\
	if (a_ != b_)							\
		check_differs(__FILE__, __LINE__, #a, a_, #b, b_);	\
} while (0)

/* The call returns -1 and leaves this errno. */
#define CHECK_FAILS(call, err) do {					\
	errno = 0;							\
	CHECK_EQ(call, -1);						\
	CHECK_EQ(errno, err);						\
} while (0)

UNUSED _Noreturn static void check_failed(const char *file, int line,
					  const char *what)
{
	dprintf(2, "%s:%d: %s: does not hold (errno %d)\n", file, line, what,
		errno);
	_exit(1);
}

UNUSED _Noreturn static void check_differs(const char *file, int line,
					   const char *a, long a_value,
					   const char *b, long b_value)
{
	dprintf(2, "%s:%d: %s is %ld (%#lx), not %s, %ld (%#lx); errno %d\n",
		file, line, a, a_value, (unsigned long)a_value, b, b_value,
		(unsigned long)b_value, errno);
	_exit(1);
}

UNUSED static int passed(const char *name)
{
	printf("%s: ok\n", name);
	return fflush(stdout) ? 1 : 0;
}

UNUSED _Noreturn static void skip(const char *reason)
{
	printf("%s\n", reason);
	fflush(stdout);
	_exit(77);
}

/* A system call instruction of our own: the kernel's value, no errno. */
UNUSED static inline long raw6(long nr, long a, long b, long c, long d, long e,
			       long f)
{
	register long r10 asm("r10") = d;
	register long r8 asm("r8") = e;
	register long r9 asm("r9") = f;
	long ret;

	asm volatile("syscall" : "=a"(ret)
		     : "0"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
		     : "rcx", "r11", "memory");
	return ret;
}

#define raw3(nr, a, b, c) raw6(nr, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define raw4(nr, a, b, c, d) \
	raw6(nr, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define raw0(nr) raw6(nr, 0, 0, 0, 0, 0, 0)

/* The status of a child that must end. */
UNUSED static int status_of(pid_t pid)
{
	int status;
	pid_t got;

	do
		got = waitpid(pid, &status, 0);
	while (got < 0 && errno == EINTR);
	CHECK_EQ(got, pid);
	return status;
}

/* Runs fn in a child, which ends with status 0 when fn returns. */
UNUSED static int child_status(void (*fn)(void))
{
	fflush(NULL);
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid) {
		fn();
		_exit(0);
	}
	return status_of(pid);
}

#define IN_CHILD(fn) CHECK_EQ(child_status(fn), 0)

#define EXITED(code)	((code) << 8)

UNUSED static void on_signal(int sig, void (*handler)(int), int flags)
{
	struct sigaction sa = { .sa_handler = handler, .sa_flags = flags };

	CHECK_EQ(sigaction(sig, &sa, NULL), 0);
}

UNUSED static void on_siginfo(int sig,
			      void (*handler)(int, siginfo_t *, void *),
			      int flags)
{
	struct sigaction sa = {
		.sa_sigaction = handler,
		.sa_flags = flags | SA_SIGINFO,
	};

	CHECK_EQ(sigaction(sig, &sa, NULL), 0);
}

UNUSED static void sleep_ms(long ms)
{
	struct timespec left = { ms / 1000, ms % 1000 * 1000000 };

	while (nanosleep(&left, &left) && errno == EINTR)
		;
}

/* Waits until the thread is asleep in the kernel, or five seconds. */
UNUSED static void wait_asleep(pid_t tid)
{
	for (int i = 0; i < 5000; i++) {
		char path[64], line[256] = "";
		snprintf(path, sizeof(path), "/proc/%d/stat", tid);
		int fd = open(path, O_RDONLY);
		if (fd >= 0) {
			ssize_t n = read(fd, line, sizeof(line) - 1);
			close(fd);
			char *state = n > 0 ? strrchr(line, ')') : NULL;
			if (state && state[2] == 'S')
				return;
		}
		sleep_ms(1);
	}
	CHECK(!"the thread never fell asleep");
}

/* The path of another test program, which lies beside this one. */
UNUSED static const char *beside(const char *name)
{
	static char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	CHECK(n > 0);
	path[n] = '\0';
	char *slash = strrchr(path, '/');
	snprintf(slash + 1, sizeof(path) - (slash + 1 - path), "%s", name);
	return path;
}

#endif
