/*
 * Printing one call: the walk over a row of the call table.
 *
 * Arguments are printed in order.  At entry the walk stops at the first one
 * that the call has yet to write; print_exit() goes on from there, so the text
 * between the two is the beginning of the same line.  What a call looks like
 * comes from its row; print_layout.c says how memory of each layout is
 * printed, print_value.c how values that are more than a list of names are, and
 * print_special.c holds the few calls that fit no row.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/core/must.h"
#include "engine/outside/print/print_parts.h"

#define RESULT_COLUMN	40
#define OBJECT_MAX	512	/* bytes of the largest layout printed as one object */

struct errno_text {
	int number;
	const char *text;
};

/* Errors that the kernel keeps to itself: a restart is about to happen. */
static const struct errno_text restarts[] = {
	{ 512, "ERESTARTSYS (To be restarted if SA_RESTART is set)" },
	{ 513, "ERESTARTNOINTR (To be restarted)" },
	{ 514, "ERESTARTNOHAND (To be restarted if no handler)" },
	{ 516, "ERESTART_RESTARTBLOCK (Interrupted by signal)" },
};

static const struct errno_text kernel_errors[] = {
	{ 515, "ENOIOCTLCMD" }, { 517, "EPROBE_DEFER" }, { 521, "EBADHANDLE" },
	{ 522, "ENOTSYNC" }, { 523, "EBADCOOKIE" }, { 524, "ENOTSUPP" },
	{ 525, "ETOOSMALL" }, { 526, "ESERVERFAULT" }, { 527, "EBADTYPE" },
	{ 528, "EJUKEBOX" }, { 529, "EIOCBQUEUED" }, { 530, "ERECALLCONFLICT" },
	{ EOPNOTSUPP, "EOPNOTSUPP" },
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const char *errno_name(int e)
{
	for (unsigned i = 0; i < COUNT(kernel_errors); i++)
		if (kernel_errors[i].number == e)
			return kernel_errors[i].text;
	return strerrorname_np(e);
}

static void pr_error(struct call_print *p, int e)
{
	for (unsigned i = 0; i < COUNT(restarts); i++) {
		if (restarts[i].number == e) {
			pr(p, "? %s", restarts[i].text);
			return;
		}
	}
	if (errno_name(e))
		pr(p, "-1 %s (%s)", errno_name(e), strerror(e));
	else
		pr(p, "-1 (errno %d)", e);
}

/* fcntl(F_GETFL) and the like: the number, and its meaning in brackets. */
static void pr_result_flags(struct call_print *p)
{
	const struct xlat *set = xlat_find(p->row->result_xlat);
	const char *name;

	switch (p->row->result_xlat) {
	case XLAT_open_flags:
		pr(p, "0x%llx (flags ", (unsigned long long)p->ret);
		pr_open_flags(p, p->ret);
		pr(p, ")");
		return;
	case XLAT_fd_flags:
	case XLAT_seal_flags:
	case XLAT_securebits:
		if (!p->ret) {
			pr(p, "0");
			return;
		}
		pr(p, "0x%llx (%s", (unsigned long long)p->ret,
		   p->row->result_xlat == XLAT_fd_flags ? "flags " :
		   p->row->result_xlat == XLAT_seal_flags ? "seals " : "");
		pr_flags(p, set, p->ret);
		pr(p, ")");
		return;
	}
	if (p->row->result_xlat == XLAT_personality ||
	    p->row->result_xlat == XLAT_membarrier_cmds ||
	    p->row->result_xlat == XLAT_ioprio) {
		pr(p, "%#llx (", (unsigned long long)p->ret);
		if (!print_value(p, p->row->result_xlat, p->ret))
			pr_flags(p, set, p->ret);
		pr(p, ")");
		return;
	}
	name = xlat_name(set, p->ret);
	if (p->row->result_xlat == XLAT_signals && !p->ret)
		name = NULL;
	pr(p, p->row->result_xlat == XLAT_lock_types || p->row->result_xlat == XLAT_sched_policy ?
	   "%#llx" : "%lld", (unsigned long long)p->ret);
	if (name)
		pr(p, " (%s)", name);
}

static void pr_result_value(struct call_print *p)
{
	switch (p->row ? p->row->result : KIND_LONG) {
	case KIND_NONE:
		pr(p, "?");
		break;
	case KIND_PTR:
	case KIND_HEX:
		pr(p, "%#llx", (unsigned long long)p->ret);
		break;
	case KIND_OCT:
		pr(p, "%#03llo", (unsigned long long)p->ret);
		break;
	case KIND_FLAGS:
		pr_result_flags(p);
		break;
	case KIND_UINT:
	case KIND_UID:
		pr(p, "%llu", (unsigned long long)p->ret);
		break;
	default:
		pr(p, "%lld", (long long)p->ret);
	}
}

static void pr_result(struct call_print *p)
{
	if (p->row && p->row->result == KIND_NONE)
		pr(p, "?");
	else if (call_failed(p))
		pr_error(p, -p->ret);
	else
		pr_result_value(p);
	if (p->noted)
		pr(p, " (%s)", p->note.len ? p->note.text : "");
}

static void pr_value(struct call_print *p, const struct arg_desc *a, uint64_t v)
{
	switch (a->kind) {
	case KIND_INT:
	case KIND_WAIT:
	case KIND_FD:
	case KIND_PID:
		pr(p, "%d", (int)v);
		break;
	case KIND_UINT:
		pr(p, "%u", (unsigned)v);
		break;
	case KIND_LONG:
	case KIND_OFF:
		pr(p, "%lld", (long long)v);
		break;
	case KIND_SIZE:
		pr(p, "%llu", (unsigned long long)v);
		break;
	case KIND_XINT:
		pr(p, "%#x", (unsigned)v);
		break;
	case KIND_HEX:
		pr(p, "%#llx", (unsigned long long)v);
		break;
	case KIND_DIRFD:
		pr_dirfd(p, v);
		break;
	case KIND_UID:
	case KIND_GID:
		pr_id(p, v);
		break;
	case KIND_SIG:
		pr_signal(p, v);
		break;
	case KIND_MODE:
		pr_mode(p, v);
		break;
	case KIND_DEV:
		pr_dev(p, (uint32_t)v);
		break;
	default:
		pr_addr(p, v);
	}
}

/* Sets whose argument is a long; the others are ints, and the rest is garbage. */
static bool wide_set(unsigned xlat)
{
	static const uint8_t wide[] = {
		XLAT_mmap_prot, XLAT_mmap_flags, XLAT_mremap_flags, XLAT_clone_flags,
		XLAT_mount_flags, XLAT_fanotify_mask, XLAT_unshare_flags, XLAT_pkey_rights,
		XLAT_securebits, XLAT_dumpable, XLAT_pr_vma,
	};

	return memchr(wide, xlat, sizeof(wide));
}

static void pr_named(struct call_print *p, const struct arg_desc *a, uint64_t v)
{
	MUST(a->what < XLAT_COUNT);
	if (!wide_set(a->what))
		v = (uint32_t)v;
	if (print_value(p, a->what, v))
		return;
	if (a->kind == KIND_FLAGS)
		pr_flags(p, xlat_find(a->what), v);
	else
		pr_enum(p, xlat_find(a->what), v);
}

/* How many elements an argument points to, as far as can be told now. */
static uint64_t mem_count(struct call_print *p, const struct arg_desc *a, unsigned arg)
{
	uint64_t bound = p->args[a->len_arg];
	unsigned kind = p->row->args[a->len_arg].kind;

	MUST(a->len_arg < CALL_ARGS && arg < p->row->nargs);
	if (kind == KIND_INT || kind == KIND_UINT)
		bound = (uint32_t)bound;
	switch (a->len_rule) {
	case LEN_RULE_RESULT:
		return p->ret >= 0 && (uint64_t)p->ret < bound ? (uint64_t)p->ret : bound;
	case LEN_RULE_COUNT:
	case LEN_RULE_BITS:
		return bound;
	case LEN_RULE_IOC:
		return bound >> 16 & 0x3fff;
	case LEN_RULE_PAGES:
		return bound / 4096 + !!(bound % 4096);
	case LEN_RULE_AT:
	case LEN_RULE_AT64:
		return p->saved[arg];
	}
	return 1;
}

static void pr_array(struct call_print *p, uint64_t addr, uint64_t count, unsigned layout)
{
	const struct layout_print *how = &print_layouts[layout];
	unsigned size = layout_size(layout);
	uint64_t data[OBJECT_MAX / 8];

	MUST(how->one && size && size <= sizeof(data));
	if (!count) {
		pr(p, "[]");
		return;
	}
	for (uint64_t i = 0; i < count; i++) {
		if (!mem_get(p, addr + i * size, data, size)) {
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
		how->one(p, data);
	}
	pr(p, "]");
}

static void pr_mem(struct call_print *p, const struct arg_desc *a, unsigned arg)
{
	const struct layout_print *how = &print_layouts[a->what];
	uint64_t addr = p->args[arg], count = mem_count(p, a, arg);
	uint64_t data[OBJECT_MAX / 8];

	MUST(a->what < LAYOUT_COUNT && (!how->one || layout_size(a->what) <= sizeof(data)));
	if (how->at && addr) {
		how->at(p, addr, count, arg);
		return;
	}
	if (!addr || !how->one || (call_failed(p) && a->dir == DIR_OUT)) {
		pr_addr(p, addr);
		return;
	}
	if (a->len_rule == LEN_RULE_COUNT || a->len_rule == LEN_RULE_RESULT)
		pr_array(p, addr, count, a->what);
	else if (pr_fetch(p, addr, data, layout_size(a->what)))
		how->one(p, data);
}

static void pr_arg(struct call_print *p, unsigned arg)
{
	const struct arg_desc *a = &p->row->args[arg];
	uint64_t v = p->args[arg];

	if (p->unknown >> arg & 1) {
		pr(p, "?");
		return;
	}
	switch (a->kind) {
	case KIND_ENUM:
	case KIND_FLAGS:
		pr_named(p, a, v);
		break;
	case KIND_PATH:
		pr_path(p, v, PATH_LIMIT - 1);
		break;
	case KIND_STR:
		pr_string(p, v);
		break;
	case KIND_MEM:
		pr_mem(p, a, arg);
		break;
	default:
		pr_value(p, a, v);
	}
}

/* open() takes a mode only when it creates. */
static bool arg_absent(const struct call_print *p, unsigned arg)
{
	const struct arg_desc *a = &p->row->args[arg];

	if (a->kind == KIND_SKIP)
		return true;
	if (p->nr == CALL_mremap && arg == 4)
		return !(p->args[3] & 6);	/* MREMAP_FIXED, MREMAP_DONTUNMAP */
	if (p->nr == CALL_membarrier && arg == 2)
		return !(p->args[1] & 1);	/* MEMBARRIER_CMD_FLAG_CPU */
	return a->kind == KIND_MODE && arg && p->row->args[arg - 1].what == XLAT_open_flags &&
	       p->row->args[arg - 1].kind == KIND_FLAGS && !(p->args[arg - 1] & 0x400040);
}

void print_args(struct call_print *p, unsigned last)
{
	MUST(last <= p->row->nargs && p->row->nargs <= CALL_ARGS);
	for (; p->next < last; p->next++) {
		if (arg_absent(p, p->next))
			continue;
		if (!p->exiting && (p->row->args[p->next].dir & DIR_OUT))
			return;
		if (p->next)
			pr(p, ", ");
		pr_arg(p, p->next);
	}
}

/* What the call overwrites and the exit needs: lengths, old contents. */
static void save_before(struct call_print *p)
{
	for (unsigned i = 0; i < p->row->nargs; i++) {
		const struct arg_desc *a = &p->row->args[i];
		uint32_t value = 0;
		size_t size;

		if (a->kind != KIND_MEM)
			continue;
		if (a->len_rule == LEN_RULE_AT &&
		    mem_get(p, p->args[a->len_arg], &value, sizeof(value)))
			p->saved[i] = value;
		if (a->what == LAYOUT_msghdr && mem_get(p, p->args[i] + 8, &value, sizeof(value)))
			p->saved[i] = value;
		if (a->dir != DIR_IO)
			continue;
		size = layout_size(a->what);
		if (size <= sizeof(p->saved[i]))
			mem_get(p, p->args[i], &p->saved[i], size);
		else if (size <= sizeof(p->before) && !mem_get(p, p->args[i], p->before, size))
			memset(p->before, 0xff, sizeof(p->before));
	}
}

static void pr_unknown(struct call_print *p)
{
	pr(p, "syscall_%#lx(", p->nr);
	for (unsigned i = 0; i < CALL_ARGS; i++)
		pr(p, "%s%#llx", i ? ", " : "", (unsigned long long)p->args[i]);
}

/* Code of its own for a call; it knows nothing of unknown arguments. */
static const struct print_special *special_of(const struct call_print *p)
{
	return p->unknown ? NULL : print_special_find(p->nr);
}

void print_enter(struct call_print *p, const struct print_mem *m, long nr,
		 const uint64_t args[CALL_ARGS])
{
	const struct print_special *special;

	p->len = p->note.len = 0;
	p->mem = m;
	p->nr = nr;
	p->next = 0;
	p->exiting = false;
	p->noted = false;
	p->ret = 0;
	memcpy(p->args, args, sizeof(p->args));
	memset(p->saved, 0, sizeof(p->saved));
	p->row = call_find_variant(nr, args);
	if (!p->row) {
		pr_unknown(p);
		return;
	}
	pr(p, "%s(", call_find(nr)->name);
	save_before(p);
	special = special_of(p);
	if (special && special->enter)
		special->enter(p);
	else
		print_args(p, p->row->nargs);
}

static void pr_exit_args(struct call_print *p, const struct print_mem *m, int64_t ret)
{
	const struct print_special *special = special_of(p);

	p->mem = m;
	p->ret = ret;
	p->exiting = true;
	if (p->row && special && special->exit)
		special->exit(p);
	else if (p->row)
		print_args(p, p->row->nargs);
	pr(p, ")");
}

void print_attempt(struct call_print *p, const struct print_mem *m, long nr,
		   const uint64_t args[CALL_ARGS])
{
	print_enter(p, m, nr, args);
	pr_exit_args(p, m, -EINPROGRESS);
}

void print_exit(struct call_print *p, const struct print_mem *m, int64_t ret)
{
	unsigned column;

	pr_exit_args(p, m, ret);
	pr(p, " ");
	column = p->column + p->len;
	if (column < RESULT_COLUMN)
		pr(p, "%*s", RESULT_COLUMN - column, "");
	pr(p, "= ");
	pr_result(p);
	p->restart = ret == -516 && p->nr != CALL_restart_syscall ? p->nr : p->restart;
}

/* It returns late or never, or fills in a list that an argument points to. */
static bool needs_by_nature(const struct call_desc *row)
{
	return call_has(row, TRAIT_SLEEPS) || row->nr == CALL_ioctl || row->nr == CALL_fcntl ||
	       row->nr == CALL_rt_sigreturn || row->nr == CALL_restart_syscall;
}

static bool is_message(const struct arg_desc *arg)
{
	return arg->kind == KIND_MEM &&
	       (arg->what == LAYOUT_msghdr || arg->what == LAYOUT_mmsghdr) && arg->dir & DIR_OUT;
}

bool print_needs_enter(long nr)
{
	const struct call_desc *row = call_find(nr);

	if (!row)
		return false;
	if (row->class == CLASS_LIFE || needs_by_nature(row))
		return true;
	for (unsigned i = 0; i < row->nargs; i++)
		if (row->args[i].dir == DIR_IO || row->args[i].len_rule == LEN_RULE_AT ||
		    is_message(&row->args[i]))
			return true;
	return false;
}

void print_bytes(struct call_print *p, const void *bytes, size_t len)
{
	p->len = 0;
	pr_quoted(p, bytes, len);
}

int64_t arg_number(const struct arg_desc *a, uint64_t value)
{
	switch (a->kind) {
	case KIND_LONG: case KIND_SIZE: case KIND_OFF: case KIND_HEX: case KIND_PTR:
		return (int64_t)value;
	case KIND_UINT: case KIND_XINT: case KIND_OCT: case KIND_MODE: case KIND_ENUM:
	case KIND_FLAGS: case KIND_DEV:
		return (uint32_t)value;
	default:
		return (int32_t)value;
	}
}

void print_free(struct call_print *p)
{
	free(p->text);
	free(p->note.text);
	memset(p, 0, sizeof(*p));
}
