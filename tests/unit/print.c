/*
 * The call table and the printer.
 *
 * The first half checks the table against itself and against the kernel's
 * headers: numbers unique, lengths naming arguments that exist, names as in
 * asm/unistd_64.h.  The second half prints calls over an array that stands for
 * the program's memory, at address BASE, and compares whole lines with what
 * strace 6.1 prints for the same bytes.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <netinet/in.h>

#include "engine/abi/table.h"
#include "engine/outside/print/print.h"
#include "engine/outside/print/xlat.h"

#define BASE	0x10000ul
#define SPACE	8192
#define OUTSIDE	0x7000ul	/* no memory there */

static uint8_t memory[SPACE];

static long memory_read(void *ctx, uint64_t addr, void *buf, size_t len)
{
	(void)ctx;
	if (addr < BASE || addr >= BASE + SPACE)
		return -EFAULT;
	if (len > BASE + SPACE - addr)
		len = BASE + SPACE - addr;
	memcpy(buf, memory + (addr - BASE), len);
	return len;
}

static const struct print_mem mem = { memory_read, NULL };
static struct call_print printer;

/* Puts bytes at an offset of the memory; gives their address. */
static uint64_t put(size_t at, const void *bytes, size_t len)
{
	memcpy(memory + at, bytes, len);
	return BASE + at;
}

#define PUT(at, object) put(at, &(object), sizeof(object))
#define PUTS(at, s) put(at, s, sizeof(s))

/* Prints a whole call without the padding before "= ". */
static const char *call(long nr, int64_t ret, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
			uint64_t e, uint64_t f)
{
	uint64_t args[6] = { a, b, c, d, e, f };

	printer.column = 40;
	print_enter(&printer, &mem, nr, args);
	print_exit(&printer, &mem, ret);
	return printer.text;
}

#define IS(expect, ...) cr_expect_str_eq(call(__VA_ARGS__), expect)

TestSuite(table);
TestSuite(print);

Test(table, numbers_ascend)
{
	static const long numbers[] = {
#define SYSCALL(nr, ...) nr,
#include "engine/abi/syscalls.def"
	};

	for (size_t i = 1; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		cr_expect_gt(numbers[i], numbers[i - 1], "row %ld after %ld", numbers[i],
			     numbers[i - 1]);
	cr_expect_eq(CALL_MAX, 510);
}

/* An address, and the kernel may write there what nobody knows. */
static bool is_untold(const struct arg_desc *a)
{
	return a->dir == DIR_OUT && (a->kind == KIND_HEX || a->kind == KIND_PTR);
}

static bool has_kind(const struct call_desc *d, enum arg_kind kind)
{
	for (unsigned i = 0; i < d->nargs; i++)
		if (d->args[i].kind == kind)
			return true;
	return false;
}

static bool has_pair(const struct call_desc *d)
{
	for (unsigned i = 0; i < d->nargs; i++)
		if (d->args[i].kind == KIND_MEM && d->args[i].what == LAYOUT_fdpair)
			return true;
	return false;
}

/* What a trait says of a row that class, result and arguments must bear out. */
static bool has_time(const struct call_desc *d)
{
	for (unsigned i = 0; i < d->nargs; i++)
		if (d->args[i].kind == KIND_WAIT ||
		    (d->args[i].dir & DIR_IN && (d->args[i].what == LAYOUT_timespec ||
						 d->args[i].what == LAYOUT_timeval)))
			return true;
	return false;
}

static void check_traits(const struct call_desc *d)
{
	bool by_fd = d->nargs && d->args[0].kind == KIND_FD;

	cr_expect_eq(d->traits >> TRAIT_COUNT, 0, "%s: no such trait", d->name);
	if (call_has(d, TRAIT_POLLS | TRAIT_SLEEPS | TRAIT_READS))
		cr_expect(call_has(d, TRAIT_WAITS), "%s: it may take for ever", d->name);
	if (call_has(d, TRAIT_EPOLL))
		cr_expect(call_has(d, TRAIT_POLLS) && by_fd, "%s: by an epoll set", d->name);
	if (call_has(d, TRAIT_READS | TRAIT_WRITES))
		cr_expect(by_fd, "%s: bytes of no descriptor", d->name);
	if (call_has(d, TRAIT_WRITES) || (call_has(d, TRAIT_SIGNALS) && d->class != CLASS_LOCAL))
		cr_expect_eq(d->class, CLASS_EFFECT, "%s", d->name);
	if (call_has(d, TRAIT_SIGNALS))
		cr_expect(d->class == CLASS_LOCAL ? !strncasecmp(d->name, "futex", 5) :
						    has_kind(d, KIND_SIG), "%s: no signal", d->name);
	if (call_has(d, TRAIT_GATHERS))
		cr_expect(d->result == KIND_FD, "%s: no set", d->name);
	if (call_has(d, TRAIT_COPIES))
		cr_expect(by_fd && d->result == KIND_FD, "%s: no copy", d->name);
	if (call_has(d, TRAIT_REPLACES))
		cr_expect(call_has(d, TRAIT_COPIES) && d->args[1].kind == KIND_FD, "%s", d->name);
	if (call_has(d, TRAIT_CLOSES_RANGE))
		cr_expect(d->args[0].kind == KIND_UINT && d->args[1].kind == KIND_UINT, "%s",
			  d->name);
	if (call_has(d, TRAIT_ACCEPTS))
		cr_expect(by_fd && d->class == CLASS_INPUT && d->result == KIND_FD, "%s", d->name);
	if (call_has(d, TRAIT_OPENS))
		cr_expect(call_path_arg(d) >= 0 && d->result == KIND_FD, "%s: no file", d->name);
	if (call_has(d, TRAIT_RENAMES))
		cr_expect(call_path_arg(d) >= 0, "%s: no path", d->name);
	if (call_has(d, TRAIT_RULE_PRIVATE | TRAIT_RULE_GUARDED))
		cr_expect(by_fd && !call_has(d, TRAIT_RULE_FREE), "%s: on what?", d->name);
	cr_expect(!call_has(d, TRAIT_CLOSES | TRAIT_REGISTERS) || by_fd, "%s: of what?", d->name);
	if (call_has(d, TRAIT_INNER))
		cr_expect(d->result == KIND_FD || has_pair(d), "%s: no descriptor", d->name);
	cr_expect(!call_has(d, TRAIT_HOT) || !call_has(d, TRAIT_SPECIAL | TRAIT_SIGNALS),
		  "%s: has more to it than its event", d->name);
	cr_expect(!call_has(d, TRAIT_CLOCK) || d->class == CLASS_SOFT, "%s: no clock", d->name);
	cr_expect(!call_has(d, TRAIT_LASTS) || has_time(d), "%s: how long?", d->name);
	cr_expect(d->class != CLASS_LOCAL ||
		  !(d->traits & ~(TRAIT_SPECIAL | TRAIT_LASTS | TRAIT_YIELDS | TRAIT_SIGNALS)),
		  "%s: nobody asks what a local call is like", d->name);
}

static void check_arguments(const struct call_desc *d)
{
	for (unsigned i = 0; i < d->nargs; i++) {
		const struct arg_desc *a = &d->args[i];

		cr_expect(a->name[0], "%s: argument %u has a name", d->name, i);
		cr_expect(memchr(a->name, 0, sizeof(a->name)), "%s: name is cut", d->name);
		if (a->kind >= KIND_VALUES)
			cr_expect(a->dir && a->len_rule, "%s(%s): pointer without a rule",
				  d->name, a->name);
		else
			cr_expect((!a->dir || is_untold(a)) && !a->len_rule,
				  "%s(%s): value with a rule", d->name, a->name);
		if (a->len_rule == LEN_NONE || a->len_rule == LEN_RULE_ONE)
			continue;
		cr_expect_lt(a->len_arg, d->nargs, "%s(%s): length argument", d->name, a->name);
		if (a->len_rule == LEN_RULE_AT)
			cr_expect_eq(d->args[a->len_arg].kind, KIND_MEM, "%s(%s)", d->name,
				     a->name);
		else if (a->len_rule != LEN_RULE_SELF && a->len_rule != LEN_RULE_ZERO)
			cr_expect_lt(d->args[a->len_arg].kind, KIND_VALUES, "%s(%s)", d->name,
				     a->name);
		for (unsigned j = 0; j < i; j++)
			cr_expect_str_neq(a->name, d->args[j].name, "%s: twice %s", d->name,
					  a->name);
	}
}

Test(table, rows_are_sound)
{
	for (long nr = 0; nr < CALL_MAX; nr++) {
		const struct call_desc *d = call_find(nr);

		if (!d)
			continue;
		cr_expect_eq(d->nr, nr);
		cr_expect_lt(d->class, CLASS_COUNT);
		cr_expect_eq(call_number(d->name), nr, "%s", d->name);
		check_arguments(d);
		check_traits(d);
	}
	cr_expect_null(call_find(-1));
	cr_expect_null(call_find(400));
	cr_expect_null(call_find(CALL_MAX));
	cr_expect_eq(call_number("no_such_call"), -1);
	cr_expect_str_eq(class_name(CLASS_EFFECT), "effect");
}

Test(table, variants_are_sound)
{
	static const struct { long nr; unsigned arg; uint64_t mask, value; const char *name; } v[] = {
#define VARIANT(nr, arg, mask, value, name, ...) { nr, arg, mask, value, #name },
#include "engine/abi/syscalls.def"
	};

	for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
		uint64_t args[CALL_ARGS] = { 0 };
		const struct call_desc *d;

		args[v[i].arg] = v[i].value;
		d = call_find_variant(v[i].nr, args);
		cr_expect_str_eq(d->name, v[i].name, "%s (call %ld, argument %u is 0x%lx) is hidden "
				 "by %s", v[i].name, v[i].nr, v[i].arg, v[i].value, d->name);
		cr_expect_eq(v[i].value & ~v[i].mask, 0, "%s", v[i].name);
		cr_expect(call_find(v[i].nr), "%s", v[i].name);
		check_arguments(d);
		check_traits(d);
	}
}

Test(table, names_are_the_kernels)
{
	const char *path = "/usr/include/x86_64-linux-gnu/asm/unistd_64.h";
	FILE *f = fopen(path, "r");
	char line[256], name[64];
	unsigned seen = 0;
	long nr;

	if (!f)
		cr_skip_test("%s is not there", path);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "#define __NR_%63s %ld", name, &nr) != 2)
			continue;
		cr_expect_eq(call_number(name), nr, "%s is %ld", name, nr);
		seen++;
	}
	fclose(f);
	cr_expect_gt(seen, 300);
}

Test(table, layouts)
{
	cr_expect_eq(layout_size(LAYOUT_stat), sizeof(struct stat));
	cr_expect_eq(layout_size(LAYOUT_epoll_event), sizeof(struct epoll_event));
	cr_expect_eq(layout_size(LAYOUT_pollfd), sizeof(struct pollfd));
	cr_expect_eq(layout_size(LAYOUT_msghdr), sizeof(struct msghdr));
	cr_expect_eq(layout_size(LAYOUT_siginfo), sizeof(siginfo_t));
	for (unsigned i = 0; i < LAYOUT_COUNT; i++)
		cr_expect_leq(layout_size(i), 512);
}

Test(table, constants_are_the_headers)
{
	static const struct { const struct xlat *set; const char *name; uint64_t value; } some[] = {
		{ &xlat_open_flags, "O_CLOEXEC", O_CLOEXEC },
		{ &xlat_open_flags, "O_TMPFILE", O_TMPFILE },
		{ &xlat_mmap_flags, "MAP_STACK", MAP_STACK },
		{ &xlat_families, "AF_NETLINK", AF_NETLINK },
		{ &xlat_msg_flags, "MSG_NOSIGNAL", MSG_NOSIGNAL },
		{ &xlat_epoll_events, "EPOLLRDHUP", EPOLLRDHUP },
		{ &xlat_ioctls, "TIOCGWINSZ", TIOCGWINSZ },
		{ &xlat_signals, "SIGCHLD", SIGCHLD },
	};
	uint64_t value;

	for (size_t i = 0; i < sizeof(some) / sizeof(some[0]); i++) {
		cr_expect(xlat_value(some[i].set, some[i].name, &value), "%s", some[i].name);
		cr_expect_eq(value, some[i].value, "%s", some[i].name);
	}
}

Test(print, padding_and_errors)
{
	uint64_t none[6] = { 0 };

	print_enter(&printer, &mem, CALL_getpid, none);
	print_exit(&printer, &mem, 42);
	cr_expect_str_eq(printer.text, "getpid()                                = 42");
	printer.column = 6;
	print_enter(&printer, &mem, CALL_getpid, none);
	print_exit(&printer, &mem, 42);
	cr_expect_str_eq(printer.text, "getpid()                          = 42");
	IS("close(-1) = -1 EBADF (Bad file descriptor)", CALL_close, -EBADF, -1, 0, 0, 0, 0, 0);
	IS("pause() = ? ERESTARTNOHAND (To be restarted if no handler)", CALL_pause, -514, 0, 0, 0,
	   0, 0, 0);
	IS("exit_group(3) = ?", CALL_exit_group, 0, 3, 0, 0, 0, 0, 0);
	IS("brk(NULL) = 0x555555559000", CALL_brk, 0x555555559000, 0, 0, 0, 0, 0, 0);
	IS("syscall_0x1f4(0x1, 0, 0, 0, 0, 0) = -1 ENOSYS (Function not implemented)", 500, -ENOSYS,
	   1, 0, 0, 0, 0, 0);
}

Test(print, strings)
{
	uint64_t s = PUTS(0, "a\"b\\\n\t\1\0012\177\303");
	uint64_t exact = PUTS(100, "12345678901234567890123456789012");
	uint64_t longer = PUTS(200, "123456789012345678901234567890123");

	IS("write(1, \"a\\\"b\\\\\\n\\t\\1\\0012\\177\\303\", 11) = 11", CALL_write, 11, 1, s, 11, 0,
	   0, 0);
	IS("read(0, 0x7000, 5) = -1 EFAULT (Bad address)", CALL_read, -EFAULT, 0, OUTSIDE, 5, 0, 0,
	   0);
	IS("read(0, \"\", 5) = 0", CALL_read, 0, 0, s, 5, 0, 0, 0);
	IS("write(1, \"12345678901234567890123456789012\"..., 33) = 33", CALL_write, 33, 1, longer,
	   33, 0, 0, 0);
	IS("memfd_create(\"12345678901234567890123456789012\", MFD_CLOEXEC) = 3", CALL_memfd_create,
	   3, exact, 1, 0, 0, 0, 0);
	IS("chdir(\"123456789012345678901234567890123\") = 0", CALL_chdir, 0, longer, 0, 0, 0, 0,
	   0);
	IS("getrandom(\"\\x61\\x22\\x62\", 3, GRND_NONBLOCK) = 3", CALL_getrandom, 3, s, 3, 1, 0, 0,
	   0);
}

Test(print, files)
{
	uint64_t path = PUTS(0, "/etc/passwd");
	struct stat st = { .st_mode = S_IFREG | 04644, .st_size = 123 };
	uint64_t at = PUT(512, st);

	IS("openat(AT_FDCWD, \"/etc/passwd\", O_RDONLY|O_CLOEXEC) = 3", CALL_openat, 3,
	   (uint32_t)AT_FDCWD, path, O_CLOEXEC, 0777, 0, 0);
	IS("open(\"/etc/passwd\", O_WRONLY|O_CREAT|O_TRUNC, 0644) = 3", CALL_open, 3, path,
	   O_WRONLY | O_CREAT | O_TRUNC, 0644, 0, 0, 0);
	IS("fstat(3, {st_mode=S_IFREG|S_ISUID|0644, st_size=123, ...}) = 0", CALL_fstat, 0, 3, at,
	   0, 0, 0, 0);
	IS("fstat(3, 0x10200) = -1 EBADF (Bad file descriptor)", CALL_fstat, -EBADF, 3, at, 0, 0, 0,
	   0);
	IS("access(\"/etc/passwd\", R_OK|W_OK) = 0", CALL_access, 0, path, 6, 0, 0, 0, 0);
	IS("mmap(NULL, 4096, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0) = 0x7f0000",
	   CALL_mmap, 0x7f0000, 0, 4096, 3, 0x22, -1, 0);
	IS("fcntl(3, F_GETFL) = 0x802 (flags O_RDWR|O_NONBLOCK)", CALL_fcntl, 0x802, 3, F_GETFL, 0,
	   0, 0, 0);
	IS("fcntl(3, F_SETFD, FD_CLOEXEC) = 0", CALL_fcntl, 0, 3, F_SETFD, 1, 0, 0, 0);
	IS("umask(022) = 002", CALL_umask, 2, 022, 0, 0, 0, 0, 0);
	IS("mremap(0x10000, 4096, 8192, MREMAP_MAYMOVE) = 0x20000", CALL_mremap, 0x20000, 0x10000,
	   4096, 8192, 1, 77, 0);
	IS("ioctl(0, _IOC(_IOC_READ, 0x77, 0x3, 0x4), 0x5) = -1 ENOTTY "
	   "(Inappropriate ioctl for device)", CALL_ioctl, -ENOTTY, 0, 0x80047703, 5, 0, 0, 0);
}

Test(print, sockets)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(80),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_un un = { .sun_family = AF_UNIX, .sun_path = "\0abc" };
	int one = 1, len = 16;
	uint64_t addr = PUT(0, in), opt = PUT(64, one), lenp = PUT(68, len), uaddr = PUT(128, un);

	IS("socket(AF_INET, SOCK_STREAM|SOCK_CLOEXEC, IPPROTO_TCP) = 3", CALL_socket, 3, AF_INET,
	   SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP, 0, 0, 0);
	IS("connect(3, {sa_family=AF_INET, sin_port=htons(80), "
	   "sin_addr=inet_addr(\"127.0.0.1\")}, 16) = 0", CALL_connect, 0, 3, addr, 16, 0, 0, 0);
	IS("bind(3, {sa_family=AF_UNIX, sun_path=@\"abc\"}, 6) = 0", CALL_bind, 0, 3, uaddr, 6, 0,
	   0, 0);
	IS("setsockopt(3, SOL_SOCKET, SO_REUSEADDR, [1], 4) = 0", CALL_setsockopt, 0, 3, SOL_SOCKET,
	   SO_REUSEADDR, opt, 4, 0);
	IS("accept4(3, NULL, NULL, SOCK_NONBLOCK) = 4", CALL_accept4, 4, 3, 0, 0, SOCK_NONBLOCK, 0,
	   0);
	IS("accept(3, {sa_family=AF_INET, sin_port=htons(80), "
	   "sin_addr=inet_addr(\"127.0.0.1\")}, [16]) = 4", CALL_accept, 4, 3, addr, lenp, 0, 0, 0);
}

/* A length that the call changes shows both values. */
Test(print, value_result_length)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(80) };
	uint64_t args[6] = { 3, PUT(0, in), BASE + 64 };
	int len = 128;

	PUT(64, len);
	cr_assert(print_needs_enter(CALL_accept));
	printer.column = 40;
	print_enter(&printer, &mem, CALL_accept, args);
	cr_expect_str_eq(printer.text, "accept(3");
	len = 16;
	PUT(64, len);
	print_exit(&printer, &mem, 4);
	cr_expect_str_eq(printer.text, "accept(3, {sa_family=AF_INET, sin_port=htons(80), "
			 "sin_addr=inet_addr(\"0.0.0.0\")}, [128 => 16]) = 4");
}

Test(print, vectors_and_messages)
{
	struct { uint64_t base, len; } iov[2];
	struct { uint64_t name, namelen, iov, iovlen, control, controllen, flags; } msg = { 0 };
	uint64_t a = PUTS(0, "hello"), v;

	iov[0].base = a;
	iov[0].len = 3;
	iov[1].base = a + 3;
	iov[1].len = 2;
	v = put(64, iov, sizeof(iov));
	IS("writev(1, [{iov_base=\"hel\", iov_len=3}, {iov_base=\"lo\", iov_len=2}], 2) = 5",
	   CALL_writev, 5, 1, v, 2, 0, 0, 0);
	IS("readv(1, [{iov_base=\"hel\", iov_len=3}, {iov_base=\"\", iov_len=2}], 2) = 3",
	   CALL_readv, 3, 1, v, 2, 0, 0, 0);
	msg.iov = v;
	msg.iovlen = 1;
	IS("sendmsg(1, {msg_name=NULL, msg_namelen=0, msg_iov=[{iov_base=\"hel\", iov_len=3}], "
	   "msg_iovlen=1, msg_controllen=0, msg_flags=0}, MSG_NOSIGNAL) = 3", CALL_sendmsg, 3, 1,
	   PUT(256, msg), MSG_NOSIGNAL, 0, 0, 0);
	IS("recvmsg(1, {msg_namelen=0}, 0) = -1 EAGAIN (Resource temporarily unavailable)",
	   CALL_recvmsg, -EAGAIN, 1, BASE + 256, 0, 0, 0, 0);
}

Test(print, waiting)
{
	struct pollfd fds[2] = { { 3, POLLIN, POLLIN }, { -1, 0, 0 } };
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET, .data.u64 = 7 };
	uint64_t two[2] = { 1, 500 };
	uint64_t f = put(0, fds, sizeof(fds)), e = PUT(64, ev), t = PUT(128, two), set = BASE + 256;

	memory[256] = 0x28;
	IS("poll([{fd=3, events=POLLIN}, {fd=-1}], 2, 100) = 1 ([{fd=3, revents=POLLIN}])",
	   CALL_poll, 1, f, 2, 100, 0, 0, 0);
	IS("poll([{fd=3, events=POLLIN}], 1, 100) = 0 (Timeout)", CALL_poll, 0, f, 1, 100, 0, 0, 0);
	IS("epoll_wait(5, [{events=EPOLLIN|EPOLLET, data={u32=7, u64=7}}], 8, -1) = 1",
	   CALL_epoll_wait, 1, 5, e, 8, -1, 0, 0);
	IS("epoll_ctl(5, EPOLL_CTL_ADD, 3, {events=EPOLLIN|EPOLLET, data={u32=7, u64=7}}) = 0",
	   CALL_epoll_ctl, 0, 5, EPOLL_CTL_ADD, 3, e, 0, 0);
	IS("select(6, [3 5], NULL, NULL, {tv_sec=1, tv_usec=500}) = 2 (in [3 5], "
	   "left {tv_sec=1, tv_usec=500})", CALL_select, 2, 6, set, 0, 0, t, 0);
	IS("nanosleep({tv_sec=1, tv_nsec=500}, 0x10080) = 0", CALL_nanosleep, 0, t, t, 0, 0, 0, 0);
	IS("nanosleep({tv_sec=1, tv_nsec=500}, {tv_sec=1, tv_nsec=500}) = ? "
	   "ERESTART_RESTARTBLOCK (Interrupted by signal)", CALL_nanosleep, -516, t, t, 0, 0, 0, 0);
	IS("futex(0x10000, FUTEX_WAIT_BITSET_PRIVATE|FUTEX_CLOCK_REALTIME, 2, NULL, "
	   "FUTEX_BITSET_MATCH_ANY) = 0", CALL_futex, 0, BASE, 0x189, 2, 0, 99, 0xffffffff);
	IS("futex(0x10000, FUTEX_WAKE_PRIVATE, 1) = 1", CALL_futex, 1, BASE, 0x81, 1, 5, 5, 5);
}

Test(print, signals)
{
	uint64_t act[4] = { 0x401000, 0x14000000, 0x402000, 1ull << (SIGINT - 1) };
	uint64_t all = ~(1ull << (SIGKILL - 1)), none = 0;
	int exited = 3 << 8, killed = SIGSEGV | 0x80;
	uint64_t a = PUT(0, act), m = PUT(64, all), z = PUT(72, none), s = PUT(80, exited),
		 k = PUT(84, killed);

	IS("rt_sigaction(SIGCHLD, {sa_handler=0x401000, sa_mask=[INT], "
	   "sa_flags=SA_RESTORER|SA_RESTART, sa_restorer=0x402000}, NULL, 8) = 0",
	   CALL_rt_sigaction, 0, SIGCHLD, a, 0, 8, 0, 0);
	IS("rt_sigprocmask(SIG_BLOCK, ~[KILL], [], 8) = 0", CALL_rt_sigprocmask, 0, 0, m, z, 8, 0,
	   0);
	IS("wait4(-1, [{WIFEXITED(s) && WEXITSTATUS(s) == 3}], WNOHANG, NULL) = 9", CALL_wait4, 9,
	   -1, s, 1, 0, 0, 0);
	IS("wait4(-1, [{WIFSIGNALED(s) && WTERMSIG(s) == SIGSEGV && WCOREDUMP(s)}], 0, NULL) = 9",
	   CALL_wait4, 9, -1, k, 0, 0, 0, 0);
	IS("wait4(-1, 0x10050, WNOHANG, NULL) = 0", CALL_wait4, 0, -1, s, 1, 0, 0, 0);
	IS("kill(7, SIGTERM) = 0", CALL_kill, 0, 7, SIGTERM, 0, 0, 0, 0);
	IS("tgkill(7, 8, SIGRT_1) = 0", CALL_tgkill, 0, 7, 8, 33, 0, 0, 0);
}

Test(print, processes)
{
	uint64_t argv[] = { PUTS(0, "ls"), PUTS(8, "-l"), 0 }, envp[] = { BASE, BASE, 0 };
	uint64_t av = PUT(64, argv), ev = PUT(128, envp), limit[2] = { 8192 * 1024, UINT64_MAX };

	IS("execve(\"ls\", [\"ls\", \"-l\"], 0x10080 /* 2 vars */) = 0", CALL_execve, 0, BASE, av,
	   ev, 0, 0, 0);
	IS("clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|CLONE_CHILD_SETTID|SIGCHLD, "
	   "child_tidptr=0x10000) = 5", CALL_clone, 5, 0x01200011, 0, 0, BASE, 0, 0);
	IS("vfork() = 5", CALL_vfork, 5, 0, 0, 0, 0, 0, 0);
	IS("prlimit64(0, RLIMIT_STACK, NULL, {rlim_cur=8192*1024, rlim_max=RLIM64_INFINITY}) = 0",
	   CALL_prlimit64, 0, 0, 3, 0, PUT(256, limit), 0, 0);
	IS("prctl(PR_SET_NAME, \"ls\") = 0", CALL_prctl, 0, 15, BASE, 0, 0, 0, 0);
	IS("arch_prctl(ARCH_SET_FS, 0x10000) = 0", CALL_arch_prctl, 0, 0x1002, BASE, 0, 0, 0, 0);
	IS("set_robust_list(0x10000, 24) = 0", CALL_set_robust_list, 0, BASE, 24, 0, 0, 0, 0);
	IS("rseq(0x10000, 0x20, 0, 0x53053053) = 0", CALL_rseq, 0, BASE, 32, 0, 0x53053053, 0, 0);
	cr_expect(print_needs_enter(CALL_execve));
	cr_expect(print_needs_enter(CALL_exit_group));
	cr_expect(!print_needs_enter(CALL_write));
	cr_expect(!print_needs_enter(-5));
}

/* Whatever the numbers and the memory are, the printer ends and stays in bounds. */
Test(print, any_call_of_any_memory, .timeout = 60)
{
	static const uint64_t odd[] = { 0, 1, 3, 8, 33, 4096, UINT32_MAX, UINT64_MAX, OUTSIDE,
					BASE, BASE + 1, BASE + SPACE - 3, INT64_MIN };
	unsigned seed = 7;

	for (unsigned round = 0; round < 40; round++) {
		for (size_t i = 0; i < SPACE; i++)
			memory[i] = rand_r(&seed) % 5 ? rand_r(&seed) % 3 : rand_r(&seed);
		for (long nr = -1; nr < CALL_MAX + 2; nr++) {
			uint64_t a[6];

			for (unsigned i = 0; i < 6; i++)
				a[i] = odd[rand_r(&seed) % (sizeof(odd) / sizeof(odd[0]))];
			call(nr, rand_r(&seed) % 3 ? (int64_t)(rand_r(&seed) % 64) : -EINVAL, a[0],
			     a[1], a[2], a[3], a[4], a[5]);
			cr_assert_eq(strlen(printer.text), printer.len);
		}
	}
	print_free(&printer);
}
