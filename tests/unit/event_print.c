/*
 * Printing calls from their events: payloads are put together by hand, as
 * engine/core/record.c would write them, and whole lines are compared.  CUT() keeps
 * as much of a payload as a window does.
 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "engine/core/walk.h"
#include "engine/outside/report/view.h"

#define KEPT_OF_WINDOW	56

TestSuite(event_print);

static uint8_t payload[4096];
static size_t used;
static struct call_print printer;

static void bytes_put(const void *bytes, size_t len)
{
	if (len)
		memcpy(payload + used, bytes, len);
	used += len;
}

static void u32_put(uint32_t value)
{
	bytes_put(&value, sizeof(value));
}

static void section(const void *bytes, size_t len)
{
	u32_put((uint32_t)len);
	bytes_put(bytes, len);
}

static void text(const char *s)
{
	section(s, strlen(s));
}

static struct event event(uint16_t call, int64_t result, uint64_t a, uint64_t b, uint64_t c,
			  uint64_t d)
{
	used = 0;
	return (struct event){ .kind = EVENT_CALL, .call = call, .result = result,
			       .arg = { a, b, c, d } };
}

/* The payload is in memory of its own, so that a sanitizer sees its end. */
static const char *print(struct event e, size_t have, const uint64_t *own)
{
	struct view v;
	uint8_t *copy;

	have = have < used ? have : used;
	copy = malloc(have + !have);
	memcpy(copy, payload, have);
	e.size = (uint32_t)used;
	view_event(&v, &e, copy, have, own);
	printer.column = 80;
	print_view(&printer, &v);
	free(copy);
	return printer.text;
}

#define IS(e, expect) cr_expect_str_eq(print(e, used, NULL), expect)
#define CUT(e, expect) cr_expect_str_eq(print(e, KEPT_OF_WINDOW, NULL), expect)

Test(event_print, what_was_read)
{
	struct event e = event(CALL_read, 7, 5, 16384, 0, 0);

	text("GET k\r\n");
	IS(e, "read(5, \"GET k\\r\\n\", 16384) = 7");
}

Test(event_print, long_content)
{
	struct event e = event(CALL_write, 100, 5, 100, 0, 0);
	char bytes[100];

	memset(bytes, 'a', sizeof(bytes));
	section(bytes, sizeof(bytes));
	IS(e, "write(5, \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"..., 100) = 100");
	CUT(e, "write(5, \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"..., 100) = 100");
	cr_expect_str_eq(print(e, 12, NULL), "write(5, \"aaaaaaaa\"..., 100) = 100");
}

Test(event_print, failed_call_has_no_content)
{
	struct event e = event(CALL_read, -EAGAIN, 5, 16384, 0, 0);
	uint64_t own[6] = { 5, 0x7000, 16384 };

	IS(e, "read(5, ?, 16384) = -1 EAGAIN (Resource temporarily unavailable)");
	cr_expect_str_eq(print(e, 0, own),
			 "read(5, 0x7000, 16384) = -1 EAGAIN (Resource temporarily unavailable)");
}

Test(event_print, paths)
{
	struct event e = event(CALL_openat, 3, (uint32_t)AT_FDCWD, O_RDONLY, 0, 0);

	text("/etc/passwd");
	IS(e, "openat(AT_FDCWD, \"/etc/passwd\", O_RDONLY) = 3");
	e = event(CALL_openat, 4, (uint32_t)AT_FDCWD, O_WRONLY | O_CREAT, 0644, 0);
	text("f");
	IS(e, "openat(AT_FDCWD, \"f\", O_WRONLY|O_CREAT, 0644) = 4");
	e = event(CALL_unlink, 0, 0, 0, 0, 0);
	text("/a/path/that/is/much/longer/than/what/is/kept/of/it/in/a/window");
	CUT(e, "unlink(\"/a/path/that/is/much/longer/than/what/is/kept/of/it/...\") = 0");
}

Test(event_print, two_paths)
{
	struct event e = event(CALL_rename, 0, 0, 0, 0, 0);

	text("from");
	text("to");
	IS(e, "rename(\"from\", \"to\") = 0");
}

Test(event_print, pointers_that_were_null)
{
	struct event e = event(CALL_accept, 5, 3, 0, 0, 0);
	uint32_t status = 0x0b00;

	IS(e, "accept(3, NULL, NULL) = 5");
	e = event(CALL_wait4, 77, (uint32_t)-1, 0, 0, 0);
	section(&status, sizeof(status));
	IS(e, "wait4(-1, [{WIFEXITED(s) && WEXITSTATUS(s) == 11}], 0, NULL) = 77");
	e = event(CALL_wait4, 77, (uint32_t)-1, 0, 0, 0);
	IS(e, "wait4(-1, NULL, 0, NULL) = 77");
}

Test(event_print, addresses)
{
	struct event e = event(CALL_accept4, 6, 3, SOCK_NONBLOCK, 0, 0);
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(4242) };
	uint32_t len = sizeof(in);

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	section(&in, sizeof(in));
	section(&len, sizeof(len));
	CUT(e, "accept4(3, {sa_family=AF_INET, sin_port=htons(4242), "
	       "sin_addr=inet_addr(\"127.0.0.1\")}, [16], SOCK_NONBLOCK) = 6");
}

Test(event_print, structs)
{
	struct epoll_event ev[2] = { { EPOLLIN, { .u64 = 5 } }, { EPOLLOUT, { .u64 = 6 } } };
	struct event e = event(CALL_epoll_wait, 2, 4, 16, (uint32_t)-1, 0);
	struct stat st = { 0 };

	section(ev, sizeof(ev));
	IS(e, "epoll_wait(4, [{events=EPOLLIN, data={u32=5, u64=5}}, "
	      "{events=EPOLLOUT, data={u32=6, u64=6}}], 16, -1) = 2");
	cr_expect_str_eq(print(e, 20, NULL), "epoll_wait(4, [{events=EPOLLIN, "
			 "data={u32=5, u64=5}}, ...], 16, -1) = 2");
	e = event(CALL_fstat, 0, 3, 0, 0, 0);
	section(&st, sizeof(st));
	CUT(e, "fstat(3, ?) = 0");
}

Test(event_print, polled)
{
	struct event e = event(CALL_poll, 1, 1, 50, 0, 0);
	struct pollfd f = { 3, POLLIN, POLLIN };

	section(&f, sizeof(f));
	IS(e, "poll([{fd=3, events=POLLIN}], 1, 50) = 1 ([{fd=3, revents=POLLIN}])");
}

Test(event_print, vectors)
{
	struct event e = event(CALL_writev, 18, 3, 3, 0, 0);

	text("said: value no. 4\n");
	IS(e, "writev(3, [{iov_base=\"said: value no. 4\\n\", iov_len=18}, ...], 3) = 18");
}

Test(event_print, messages)
{
	struct event e = event(CALL_sendmsg, 5, 3, MSG_NOSIGNAL, 0, 0);

	u32_put(0);
	section(NULL, 0);
	section(NULL, 0);
	text("hello");
	IS(e, "sendmsg(3, {msg_name=NULL, msg_namelen=0, "
	      "msg_iov=[{iov_base=\"hello\", iov_len=5}], msg_iovlen=1, msg_controllen=0, msg_flags=0}, MSG_NOSIGNAL) = 5");
}

Test(event_print, lists_of_strings)
{
	struct event e = event(CALL_execve, 0, 0, 0, 0, 0);

	text("/bin/ls");
	text("ls");
	text("-l");
	u32_put(STRINGS_END);
	IS(e, "execve(\"/bin/ls\", [\"ls\", \"-l\"], ?) = 0");
	cr_expect_str_eq(print(e, 20, NULL), "execve(\"/bin/ls\", [\"ls\", \"...\"], ?) = 0");
}

Test(event_print, values)
{
	struct event e = event(CALL_close, -EBADF, 9, 0, 0, 0);

	IS(e, "close(9) = -1 EBADF (Bad file descriptor)");
	e = event(CALL_fcntl, 0, 9, F_SETFD, FD_CLOEXEC, 0);
	IS(e, "fcntl(9, F_SETFD, FD_CLOEXEC) = 0");
	e = event(CALL_exit_group, 0, 3, 0, 0, 0);
	IS(e, "exit_group(3) = ?");
}

/* Its event has lanes in the place of arguments. */
Test(event_print, births)
{
	struct event e = event(CALL_fork, 123, 7, 1, 0, 0);

	IS(e, "fork() = 123");
	e = event(CALL_clone3, 123, 7, 1, 0, 0);
	IS(e, "clone3(?, ?) = 123");
}

Test(event_print, calls_without_a_row)
{
	struct event e = event(333, -ENOSYS, 0, 0, 0, 0);

	e.call = 460;
	cr_expect(strstr(print(e, 0, NULL), "= -1 ENOSYS"));
}

/* Any bytes at all are printed, and nothing behind them is read. */
Test(event_print, nonsense)
{
	uint32_t seed = 1;

	for (int round = 0; round < 20000; round++) {
		struct event e = event((uint16_t)(round % (CALL_MAX + 2)), round % 7 - 3, seed,
				       seed >> 3, seed >> 5, 2);
		uint64_t own[6] = { seed, seed, 16, seed, 8, seed };

		for (used = 0; used < seed % 100; used++) {
			seed = seed * 1103515245 + 12345;
			payload[used] = (uint8_t)(seed >> 16) & (round & 1 ? 0xff : 3);
		}
		cr_assert_not_null(print(e, KEPT_OF_WINDOW, round & 2 ? own : NULL));
		seed = seed * 1103515245 + 12345;
	}
}
