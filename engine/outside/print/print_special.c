/*
 * Calls that fit no row: those that print their arguments in another order, that
 * print the same memory twice, or whose arguments depend on one another.  Each is
 * a pair of functions in the table at the end.  enter() prints what is known
 * before the call and sets p->next past it; exit() prints the rest.
 */
#include <poll.h>
#include <string.h>
#include <sys/select.h>

#include "engine/core/must.h"
#include "engine/outside/print/print_parts.h"

/* socket(): the protocol's name depends on the family. */
static void socket_enter(struct call_print *p)
{
	uint32_t proto = p->args[2];
	const char *name = NULL;

	print_args(p, 2);
	if (p->args[0] == 2 || p->args[0] == 10)
		name = xlat_name(&xlat_inet_protocols, proto);
	if (p->args[0] == 10 && !name)
		name = xlat_name(&xlat_inet6_protocols, proto);
	if (p->args[0] == 16)
		name = xlat_name(&xlat_netlink_protocols, proto);
	pr(p, ", ");
	if (name)
		pr(p, "%s", name);
	else
		pr(p, "%d", (int)proto);
	p->next = 3;
}

static void clone_flags(struct call_print *p, uint64_t flags)
{
	uint64_t bits = flags & ~0xffull;

	if (bits)
		pr_flags(p, &xlat_clone_flags, bits);
	if (flags & 0xff) {
		pr(p, bits ? "|" : "");
		pr_signal(p, flags & 0xff);
	}
	if (!flags)
		pr(p, "0");
}

static void clone_enter(struct call_print *p)
{
	pr(p, "child_stack=");
	pr_addr(p, p->args[1]);
	pr(p, ", flags=");
	clone_flags(p, p->args[0]);
	if (!(p->args[0] & 0x01300000 & ~0x00200000) && !(p->args[0] & 0x00281000))
		p->next = CALL_ARGS;
}

static void clone_exit(struct call_print *p)
{
	uint64_t flags = p->args[0];
	int tid;

	if (flags & 0x00101000) {
		pr(p, ", parent_tid=");
		if (!call_failed(p) && mem_get(p, p->args[2], &tid, sizeof(tid)))
			pr(p, "[%d]", tid);
		else
			pr_addr(p, p->args[2]);
	}
	if (flags & 0x00080000) {
		pr(p, ", tls=");
		pr(p, "%#llx", (unsigned long long)p->args[4]);
	}
	if (flags & 0x01200000) {
		pr(p, ", child_tidptr=");
		pr_addr(p, p->args[3]);
	}
}

static void clone3_enter(struct call_print *p)
{
	pr_clone_args(p, p->args[0], p->args[1], 0);
}

static void clone3_exit(struct call_print *p)
{
	pr_clone_args(p, p->args[0], p->args[1], 0);
	pr(p, ", %llu", (unsigned long long)p->args[1]);
}

static void cap_data(struct call_print *p, uint32_t version)
{
	uint32_t d[6] = { 0 };
	size_t size = version == 0x19980330 ? 12 : 24;

	if (size == 12 || version == 0x20071026 || version == 0x20080522) {
		if (pr_fetch(p, p->args[1], d, size)) {
			pr_capdata(p, d);
		}
	} else {
		pr_addr(p, p->args[1]);
	}
}

/* poll(): descriptors and wishes at entry, what came in the note. */
static void poll_enter(struct call_print *p)
{
	uint64_t n = (uint32_t)p->args[1], addr = p->args[0];
	struct pollfd f;

	if (!addr || !n || !mem_get(p, addr, &f, sizeof(f))) {
		if (addr && !n)
			pr(p, "[]");
		else
			pr_addr(p, addr);
		n = 0;
	}
	for (uint64_t i = 0; i < n; i++) {
		if (!mem_get(p, addr + i * sizeof(f), &f, sizeof(f))) {
			pr_rest(p, addr + i * sizeof(f));
			break;
		}
		pr(p, i ? ", " : "[");
		if (i == ARRAY_LIMIT) {
			pr(p, "...");
			break;
		}
		pr(p, "{fd=%d", f.fd);
		if (f.fd >= 0) {
			pr(p, ", events=");
			pr_flags(p, &xlat_poll_events, (uint16_t)f.events);
		}
		pr(p, "}");
	}
	if (n)
		pr(p, "]");
	pr(p, ", %u", (unsigned)p->args[1]);
	p->next = 2;
	if (p->nr == CALL_poll) {
		print_args(p, 3);
		return;
	}
	pr(p, ", ");
	if (p->args[2] && pr_fetch(p, p->args[2], p->before, 16))
		pr_timespec(p, p->before);
	else if (!p->args[2])
		pr(p, "NULL");
	p->next = 3;
	print_args(p, 5);
}

/* The program says any number, and nobody waits for so many looks at its memory. */
#define REVENTS_LIMIT	65536

static void pr_revents(struct call_print *p)
{
	uint64_t asked = (uint32_t)p->args[1], n = asked < REVENTS_LIMIT ? asked : REVENTS_LIMIT;
	const char *sep = "[";
	unsigned shown = 0;
	struct pollfd f;

	for (uint64_t i = 0; i < n; i++) {
		if (!mem_get(p, p->args[0] + i * sizeof(f), &f, sizeof(f)))
			break;
		if (!f.revents)
			continue;
		pr(p, "%s", sep);
		sep = ", ";
		if (shown++ == ARRAY_LIMIT) {
			pr(p, "...");
			break;
		}
		pr(p, "{fd=%d, revents=", f.fd);
		pr_flags(p, &xlat_poll_events, (uint16_t)f.revents);
		pr(p, "}");
	}
	pr(p, sep[0] == '[' ? "[]" : "]");
}

static void poll_exit(struct call_print *p)
{
	uint64_t left[2];

	if (call_failed(p))
		return;
	note_begin(p);
	if (!p->ret) {
		pr(p, "Timeout");
	} else {
		pr_revents(p);
		if (p->nr == CALL_ppoll && p->args[2] && mem_get(p, p->args[2], left, 16)) {
			pr(p, ", left ");
			pr_timespec(p, left);
		}
	}
	note_end(p);
}

static unsigned fdset_read(struct call_print *p, unsigned arg, fd_set *set)
{
	int n = (int)p->args[0];

	MUST(arg < CALL_ARGS);
	FD_ZERO(set);
	if (n < 0)
		n = 0;
	if (n > FD_SETSIZE)
		n = FD_SETSIZE;
	if (!p->args[arg] || !mem_get(p, p->args[arg], set, (n + 63) / 64 * 8))
		return 0;
	return n;
}

static unsigned pr_fdset(struct call_print *p, const fd_set *set, unsigned n)
{
	unsigned count = 0;

	pr(p, "[");
	for (unsigned fd = 0; fd < n; fd++)
		if (FD_ISSET(fd, set))
			pr(p, "%s%u", count++ ? " " : "", fd);
	pr(p, "]");
	return count;
}

static void select_enter(struct call_print *p)
{
	fd_set set;

	pr(p, "%d", (int)p->args[0]);
	for (unsigned arg = 1; arg <= 3; arg++) {
		unsigned n = fdset_read(p, arg, &set);

		pr(p, ", ");
		if (!p->args[arg] || (!n && (int)p->args[0] != 0))
			pr_addr(p, p->args[arg]);
		else
			pr_fdset(p, &set, n);
	}
	pr(p, ", ");
	if (!p->args[4])
		pr(p, "NULL");
	else if (pr_fetch(p, p->args[4], p->before, 16))
		(p->nr == CALL_select ? pr_timeval : pr_timespec)(p, p->before);
	p->next = 5;
	print_args(p, p->row->nargs);
}

static void select_exit(struct call_print *p)
{
	static const char *const names[] = { "", "in ", "out ", "except " };
	const char *sep = "";
	uint64_t left[2];
	fd_set set;

	if (call_failed(p))
		return;
	note_begin(p);
	if (!p->ret) {
		pr(p, "Timeout");
		note_end(p);
		return;
	}
	for (unsigned arg = 1; arg <= 3; arg++) {
		unsigned n = fdset_read(p, arg, &set), any = 0;

		for (unsigned fd = 0; fd < n; fd++)
			any += !!FD_ISSET(fd, &set);
		if (!any)
			continue;
		pr(p, "%s%s", sep, names[arg]);
		pr_fdset(p, &set, n);
		sep = ", ";
	}
	if (p->args[4] && mem_get(p, p->args[4], left, 16)) {
		pr(p, "%sleft ", sep);
		(p->nr == CALL_select ? pr_timeval : pr_timespec)(p, left);
	}
	note_end(p);
}

/* time(): the date beside the seconds. */
static void time_exit(struct call_print *p)
{
	print_args(p, 1);
	if (call_failed(p))
		return;
	note_begin(p);
	pr_date(p, p->ret, 0, 0);
	note_end(p);
}

/* mknod(): the mode has a type, and only devices have a number. */
static void mknod_enter(struct call_print *p)
{
	unsigned at = p->nr == CALL_mknodat ? 2 : 1, type = p->args[at] & 0170000;

	print_args(p, at);
	pr(p, ", ");
	pr_file_mode(p, p->args[at] & 0xffff);
	if (type == 0020000 || type == 0060000) {
		pr(p, ", ");
		pr_dev(p, (uint32_t)p->args[at + 1]);
	}
	p->next = CALL_ARGS;
}

/* capget() and capset(): the header is known at entry. */
static void cap_enter(struct call_print *p)
{
	uint32_t h[2];

	if (pr_fetch(p, p->args[0], h, sizeof(h)))
		pr_caphdr(p, h);
	else
		h[0] = 0;
	p->next = 1;
	if (p->nr != CALL_capset)
		return;
	pr(p, ", ");
	cap_data(p, h[0]);
	p->next = 2;
}

static void cap_exit(struct call_print *p)
{
	uint32_t version = 0;

	if (p->next == 2)
		return;
	pr(p, ", ");
	mem_get(p, p->args[0], &version, sizeof(version));
	cap_data(p, version);
}

static void restart_enter(struct call_print *p)
{
	const struct call_desc *row = p->restart ? call_find(p->restart) : NULL;

	if (row)
		pr(p, "<... resuming interrupted %s ...>", row->name);
}

/* recvmmsg(): how much of its time was left. */
static void recvmmsg_exit(struct call_print *p)
{
	uint64_t left[2];

	print_args(p, 4);
	pr(p, ", ");
	if (p->args[4] && p->before[0] != UINT64_MAX)
		pr_timespec(p, p->before);
	else
		pr_addr(p, p->args[4]);
	if (p->ret < 0 || !p->args[4] || !mem_get(p, p->args[4], left, sizeof(left)))
		return;
	note_begin(p);
	if (!p->ret) {
		pr(p, "Timeout");
	} else {
		pr(p, "left ");
		pr_timespec(p, left);
	}
	note_end(p);
}

/* mq_open(): mode and attributes only when it creates. */
static void mq_open_enter(struct call_print *p)
{
	print_args(p, 2);
	if (p->args[1] & 0100) {
		print_args(p, 4);
		return;
	}
	p->next = 4;
}

/* rt_sigreturn() takes its argument from the stack: a ucontext with the mask. */
static void sigreturn_enter(struct call_print *p)
{
	uint64_t mask;

	if (!p->sp || !mem_get(p, p->sp + 296, &mask, sizeof(mask)))
		return;
	pr(p, "{mask=");
	pr_sigset(p, &mask, sizeof(mask));
	pr(p, "}");
}

static const struct print_special specials[] = {
	{ CALL_socket, socket_enter, NULL },
	{ CALL_socketpair, socket_enter, NULL },
	{ CALL_rt_sigreturn, sigreturn_enter, NULL },
	{ CALL_clone, clone_enter, clone_exit },
	{ CALL_clone3, clone3_enter, clone3_exit },
	{ CALL_poll, poll_enter, poll_exit },
	{ CALL_ppoll, poll_enter, poll_exit },
	{ CALL_select, select_enter, select_exit },
	{ CALL_pselect6, select_enter, select_exit },
	{ CALL_time, NULL, time_exit },
	{ CALL_mknod, mknod_enter, NULL },
	{ CALL_mknodat, mknod_enter, NULL },
	{ CALL_capget, cap_enter, cap_exit },
	{ CALL_capset, cap_enter, cap_exit },
	{ CALL_restart_syscall, restart_enter, NULL },
	{ CALL_recvmmsg, NULL, recvmmsg_exit },
	{ CALL_mq_open, mq_open_enter, NULL },
	{ CALL_getsockopt, special_sockopt, special_sockopt },
	{ CALL_setsockopt, special_sockopt, special_sockopt },
};

const struct print_special *print_special_find(long nr)
{
	for (unsigned i = 0; i < sizeof(specials) / sizeof(specials[0]); i++)
		if (specials[i].nr == nr)
			return &specials[i];
	return NULL;
}
