/*
 * How memory of each layout is printed: the table that joins the layouts of the
 * call table with the functions of print_*.c, and the printers of the simplest
 * layouts.  A layout without a row here prints as an address.
 */
#include <string.h>

#include "engine/core/must.h"
#include "engine/outside/print/print_parts.h"

static void one_int(struct call_print *p, const void *data)
{
	pr(p, "%d", *(const int *)data);
}

static void one_uint(struct call_print *p, const void *data)
{
	pr(p, "%u", *(const unsigned *)data);
}

static void one_u64(struct call_print *p, const void *data)
{
	pr(p, "%llu", *(const unsigned long long *)data);
}

static void one_uid(struct call_print *p, const void *data)
{
	pr_id(p, *(const uint32_t *)data);
}

/* A single number behind a pointer stands in brackets; in an array it does not. */
static void pr_number(struct call_print *p, uint64_t addr, uint64_t count, unsigned arg,
		      void (*one)(struct call_print *, const void *), unsigned size)
{
	const struct arg_desc *a = &p->row->args[arg];
	bool array = a->len_rule != LEN_RULE_ONE;
	uint64_t data;

	MUST(arg < p->row->nargs && size <= sizeof(data));
	if (call_failed(p) && a->dir == DIR_OUT) {
		pr_addr(p, addr);
		return;
	}
	if (array)
		count = (uint32_t)count;
	if (array && !count) {
		pr(p, "[]");
		return;
	}
	for (uint64_t i = 0; i < count; i++) {
		if (!mem_get(p, addr + i * size, &data, size)) {
			if (!i) {
				pr_addr(p, addr);
				return;
			}
			pr_rest(p, addr + i * size);
			break;
		}
		pr(p, i ? ", " : "[");
		if (i == ARRAY_LIMIT) {
			pr(p, "...");
			break;
		}
		one(p, &data);
	}
	pr(p, "]");
}

static void at_int(struct call_print *p, uint64_t addr, uint64_t count, unsigned arg)
{
	if (p->row->args[arg].dir == DIR_IO)
		pr_socklen(p, addr, count, arg);
	else
		pr_number(p, addr, count, arg, one_int, 4);
}

static void at_uint(struct call_print *p, uint64_t addr, uint64_t count, unsigned arg)
{
	pr_number(p, addr, count, arg, one_uint, 4);
}

static void at_u64(struct call_print *p, uint64_t addr, uint64_t count, unsigned arg)
{
	pr_number(p, addr, count, arg, one_u64, 8);
}

static void at_uid(struct call_print *p, uint64_t addr, uint64_t count, unsigned arg)
{
	pr_number(p, addr, count, arg, one_uid, 4);
}

static void one_hex(struct call_print *p, const void *data)
{
	pr(p, "%#x", *(const unsigned *)data);
}

static void at_xint(struct call_print *p, uint64_t addr, uint64_t count, unsigned arg)
{
	pr_number(p, addr, count, arg, one_hex, 4);
}

static void one_ptr(struct call_print *p, const void *data)
{
	pr_addr(p, *(const uint64_t *)data);
}

static void at_ptr(struct call_print *p, uint64_t addr, uint64_t count, unsigned arg)
{
	pr_number(p, addr, count, arg, one_ptr, 8);
}

static void one_fdpair(struct call_print *p, const void *data)
{
	const int *fds = data;

	pr(p, "[%d, %d]", fds[0], fds[1]);
}

static void at_bytes(struct call_print *p, uint64_t addr, uint64_t count, unsigned arg)
{
	const struct arg_desc *a = &p->row->args[arg];

	if (a->dir == DIR_OUT && (call_failed(p) || !p->exiting ||
				  (!p->args[a->len_arg] && a->len_rule == LEN_RULE_RESULT &&
				   p->ret)))
		pr_addr(p, addr);
	else
		pr_buffer(p, addr, count);
}

static void at_hexbytes(struct call_print *p, uint64_t addr, uint64_t count, unsigned arg)
{
	uint8_t data[STRING_LIMIT];
	size_t show = count < sizeof(data) ? count : sizeof(data);

	(void)arg;
	if (call_failed(p) || !mem_get(p, addr, data, show)) {
		pr_addr(p, addr);
		return;
	}
	pr_hexed(p, data, show);
	if (count > show)
		pr(p, "...");
}

/* mincore(): one byte for each page. */
static void one_byte(struct call_print *p, const void *data)
{
	pr(p, "%u", *(const uint8_t *)data & 1);
}

static void at_pagevec(struct call_print *p, uint64_t addr, uint64_t count, unsigned arg)
{
	pr_number(p, addr, count, arg, one_byte, 1);
}

/* move_pages(): a node, or the error that kept the page where it was. */
static void one_status(struct call_print *p, const void *data)
{
	int v = *(const int *)data;

	if (v < 0 && strerrorname_np(-v))
		pr(p, "-%s", strerrorname_np(-v));
	else
		pr(p, "%d", v);
}

static void at_status(struct call_print *p, uint64_t addr, uint64_t count, unsigned arg)
{
	pr_number(p, addr, count, arg, one_status, 4);
}

static void one_mpol(struct call_print *p, const void *data)
{
	print_value(p, XLAT_mpol_modes, *(const uint32_t *)data);
}

static void at_mpol(struct call_print *p, uint64_t addr, uint64_t count, unsigned arg)
{
	pr_number(p, addr, count, arg, one_mpol, 4);
}

/* Sets of memory nodes: all words of the set, the first ones only if it is long. */
static void at_nodemask(struct call_print *p, uint64_t addr, uint64_t bits, unsigned arg)
{
	uint64_t words = (bits + 62) / 64, word;

	(void)arg;
	if (!bits || bits > 1 << 20 || call_failed(p) || !mem_get(p, addr, &word, 8)) {
		pr_addr(p, addr);
		return;
	}
	for (uint64_t i = 0; i < words; i++) {
		if (!mem_get(p, addr + i * 8, &word, 8))
			break;
		if (i == ARRAY_LIMIT) {
			pr(p, ", ...");
			break;
		}
		pr(p, "%s%#0*llx", i ? ", " : "[", 16, (unsigned long long)word);
	}
	pr(p, "]");
}

/* Values of attributes end in a NUL more often than not; it is not shown. */
static void at_xattr(struct call_print *p, uint64_t addr, uint64_t count, unsigned arg)
{
	char last = 1;

	if (p->row->args[arg].dir == DIR_OUT && p->exiting && !p->args[p->row->args[arg].len_arg]) {
		pr_addr(p, addr);
		return;
	}
	if (count > 65536) {
		pr_addr(p, addr);
		return;
	}
	if (count && mem_get(p, addr + count - 1, &last, 1) && !last)
		count--;
	pr_buffer(p, addr, count);
}

static void at_text(struct call_print *p, uint64_t addr, uint64_t count, unsigned arg)
{
	(void)count, (void)arg;
	if (call_failed(p))
		pr_addr(p, addr);
	else
		pr_path(p, addr, PATH_LIMIT);
}

const struct layout_print print_layouts[LAYOUT_COUNT] = {
	[LAYOUT_bytes] = { .at = at_bytes },
	[LAYOUT_hexbytes] = { .at = at_hexbytes },
	[LAYOUT_text] = { .at = at_text },
	[LAYOUT_int] = { .one = one_int, .at = at_int },
	[LAYOUT_uint] = { .one = one_uint, .at = at_uint },
	[LAYOUT_u64] = { .one = one_u64, .at = at_u64 },
	[LAYOUT_xint] = { .one = one_hex, .at = at_xint },
	[LAYOUT_ptr] = { .one = one_ptr, .at = at_ptr },
	[LAYOUT_ptrv] = { .one = one_ptr, .at = at_ptr },
	[LAYOUT_uid] = { .one = one_uid, .at = at_uid },
	[LAYOUT_off] = { .at = pr_offset },
	[LAYOUT_fdpair] = { .one = one_fdpair },
	[LAYOUT_strv] = { .at = pr_strv },
	[LAYOUT_stat] = { .one = pr_stat },
	[LAYOUT_statfs] = { .one = pr_statfs },
	[LAYOUT_statx] = { .one = pr_statx },
	[LAYOUT_timespec] = { .one = pr_timespec, .at = pr_timespec_at },
	[LAYOUT_timespec2] = { .at = pr_utimes_ns },
	[LAYOUT_timeval] = { .one = pr_timeval },
	[LAYOUT_timeval2] = { .at = pr_utimes },
	[LAYOUT_timezone] = { .one = pr_timezone },
	[LAYOUT_itimerval] = { .one = pr_itimerval },
	[LAYOUT_itimerspec] = { .one = pr_itimerspec },
	[LAYOUT_utimbuf] = { .one = pr_utimbuf },
	[LAYOUT_tms] = { .one = pr_tms },
	[LAYOUT_time_t] = { .one = pr_time },
	[LAYOUT_rlimit] = { .one = pr_rlimit },
	[LAYOUT_rusage] = { .one = pr_rusage, .at = pr_rusage_at },
	[LAYOUT_sysinfo] = { .one = pr_sysinfo },
	[LAYOUT_utsname] = { .one = pr_utsname },
	[LAYOUT_sigset] = { .at = pr_sigset_at },
	[LAYOUT_sigset_arg] = { .at = pr_sigset_arg },
	[LAYOUT_sigaction] = { .one = pr_sigaction },
	[LAYOUT_siginfo] = { .one = pr_siginfo, .at = pr_siginfo_at },
	[LAYOUT_sigevent] = { .at = pr_sigevent },
	[LAYOUT_signum] = { .one = pr_signum },
	[LAYOUT_stack] = { .one = pr_stack },
	[LAYOUT_epoll_event] = { .one = pr_epoll_event, .at = pr_epoll_at },
	[LAYOUT_status] = { .at = at_status },
	[LAYOUT_pagevec] = { .at = at_pagevec },
	[LAYOUT_mpolmode] = { .at = at_mpol },
	[LAYOUT_nodemask] = { .at = at_nodemask },
	[LAYOUT_xattr] = { .at = at_xattr },
	[LAYOUT_iovaddr] = { .at = pr_iovaddr },
	[LAYOUT_sock_fprog] = { .one = pr_fprog },
	[LAYOUT_io_event] = { .one = pr_io_event },
	[LAYOUT_iocb] = { .one = pr_iocb },
	[LAYOUT_iocbp] = { .at = pr_iocb_list },
	[LAYOUT_landlock] = { .at = pr_landlock },
	[LAYOUT_iovec] = { .at = pr_iovec },
	[LAYOUT_msghdr] = { .at = pr_msghdr },
	[LAYOUT_mmsghdr] = { .at = pr_mmsghdr },
	[LAYOUT_sockaddr] = { .at = pr_sockaddr_at },
	[LAYOUT_sockopt] = { .at = pr_sockopt },
	[LAYOUT_ifreq] = { .at = pr_ifreq_at },
	[LAYOUT_dirent] = { .at = pr_dirents },
	[LAYOUT_dirent64] = { .at = pr_dirents64 },
	[LAYOUT_flock] = { .one = pr_flock },
	[LAYOUT_f_owner_ex] = { .one = pr_owner },
	[LAYOUT_wstatus] = { .at = pr_wstatus },
	[LAYOUT_cpumask] = { .at = pr_cpumask },
	[LAYOUT_sched_param] = { .one = pr_sched_param },
	[LAYOUT_sched_attr] = { .at = pr_sched_attr },
	[LAYOUT_timex] = { .one = pr_timex },
	[LAYOUT_caphdr] = { .one = pr_caphdr },
	[LAYOUT_capdata] = { .one = pr_capdata },
	[LAYOUT_clone_args] = { .at = pr_clone_args },
	[LAYOUT_open_how] = { .at = pr_open_how },
	[LAYOUT_uring_params] = { .at = pr_uring_params },
	[LAYOUT_termios] = { .one = pr_termios },
	[LAYOUT_termios2] = { .one = pr_termios },
	[LAYOUT_winsize] = { .one = pr_winsize },
	[LAYOUT_shmid] = { .one = pr_shmid },
	[LAYOUT_sembuf] = { .one = pr_sembuf },
	[LAYOUT_msgbuf] = { .at = pr_msgbuf },
	[LAYOUT_mq_attr] = { .one = pr_mq_attr },
	[LAYOUT_file_handle] = { .at = pr_file_handle },
	[LAYOUT_futex_waitv] = { .one = pr_futex_waitv },
	[LAYOUT_ustat] = { .one = pr_ustat },
	[LAYOUT_taskname] = { .at = pr_taskname },
	[LAYOUT_cstatrange] = { .one = pr_cstatrange },
	[LAYOUT_cstat] = { .one = pr_cstat },
};
