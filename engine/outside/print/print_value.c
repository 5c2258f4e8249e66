/*
 * Values that are more than a list of names: a type with flags beside it, a
 * number in which several are packed.  Each is a row of `printers`, by the set
 * that the call table names for the argument; all other sets are plain and
 * print_value() answers false.
 */
#include "engine/outside/print/print_parts.h"

/* A type in the low bits and flags above: TYPE|FLAG|FLAG. */
static void pr_type_flags(struct call_print *p, const struct xlat *types, uint64_t mask,
			  const struct xlat *flags, uint64_t v)
{
	pr_enum(p, types, v & mask);
	pr_more_flags(p, flags, v & ~mask);
}

static void pr_sock_type(struct call_print *p, uint64_t v)
{
	const char *name = xlat_name(&xlat_sock_types, v & 0xf);

	if (name)
		pr(p, "%s", name);
	else
		pr(p, "%#llx /* SOCK_??? */", (unsigned long long)(v & 0xf));
	pr_more_flags(p, &xlat_sock_flags, v & ~0xfull);
}

static void pr_mmap_flags(struct call_print *p, uint64_t v)
{
	static const struct xlat_value types[] = {
		{ 1, "MAP_SHARED" }, { 2, "MAP_PRIVATE" }, { 3, "MAP_SHARED_VALIDATE" },
		{ 0, "MAP_FILE" },
	};
	static const struct xlat set = { "MAP_???", 4, types };
	const uint64_t huge = 0x3full << 26;
	uint64_t flags = v & ~0xfull & ~huge;

	pr_enum(p, &set, v & 0xf);
	pr_more_flags(p, &xlat_mmap_flags, flags);
	if (v & huge)
		pr(p, "|%llu<<MAP_HUGE_SHIFT", (unsigned long long)(v & huge) >> 26);
}

static void pr_futex_op(struct call_print *p, uint64_t v)
{
	const char *name = xlat_name(&xlat_futex_ops, v & 0x7f);

	if (!name || v & ~0x1ffull || (v & 0x100 && !(0x2a01 >> (v & 0x7f) & 1))) {
		pr(p, "%#llx /* FUTEX_??? */", (unsigned long long)v);
		return;
	}
	pr(p, "%s%s%s", name, v & 0x80 ? "_PRIVATE" : "",
	   v & 0x100 ? "|FUTEX_CLOCK_REALTIME" : "");
}

/* FUTEX_WAKE_OP packs an operation, a comparison and two numbers. */
static void pr_wake_op(struct call_print *p, uint64_t v)
{
	static const char *const ops[] = { "SET", "ADD", "OR", "ANDN", "XOR" };
	static const char *const cmps[] = { "EQ", "NE", "LT", "LE", "GT", "GE" };
	unsigned op = v >> 28 & 7, cmp = v >> 24 & 15;

	if (v >> 31)
		pr(p, "FUTEX_OP_OPARG_SHIFT<<28|");
	if (op < 5)
		pr(p, "FUTEX_OP_%s<<28", ops[op]);
	else
		pr(p, "%#x<<28 /* FUTEX_OP_??? */", op);
	pr(p, "|%#x<<12|", (unsigned)(v >> 12 & 0xfff));
	if (cmp < 6)
		pr(p, "FUTEX_OP_CMP_%s<<24", cmps[cmp]);
	else
		pr(p, "%#x<<24 /* FUTEX_OP_CMP_??? */", cmp);
	pr(p, "|%#x", (unsigned)(v & 0xfff));
}

/* Negative clocks belong to a process, a thread or a descriptor. */
static void pr_clock(struct call_print *p, uint64_t v)
{
	static const char *const which[] = { "CPUCLOCK_PROF", "CPUCLOCK_VIRT", "CPUCLOCK_SCHED" };
	int id = (int)v;

	if (id >= 0)
		pr_enum(p, &xlat_clockids, v);
	else if ((id & 7) == 3)
		pr(p, "FD_TO_CLOCKID(%d)", ~(id >> 3));
	else if ((id & 3) == 3)
		pr(p, "%d", id);
	else
		pr(p, "MAKE_%s_CPUCLOCK(%d, %s)", id & 4 ? "THREAD" : "PROCESS", ~(id >> 3),
		   which[id & 3]);
}

static void pr_ioctl(struct call_print *p, uint64_t v)
{
	static const char *const dirs[] = {
		"_IOC_NONE", "_IOC_WRITE", "_IOC_READ", "_IOC_READ|_IOC_WRITE",
	};
	const char *name = xlat_name(&xlat_ioctls, v);

	if (name)
		pr(p, "%s", name);
	else
		pr(p, "_IOC(%s, %#x, %#x, %#x)", dirs[v >> 30 & 3], (unsigned)(v >> 8 & 0xff),
		   (unsigned)(v & 0xff), (unsigned)(v >> 16 & 0x3fff));
}

static void pr_statx_flags(struct call_print *p, uint64_t v)
{
	if ((v & 0x6000) == 0x6000) {
		pr(p, "AT_STATX_FORCE_SYNC|AT_STATX_DONT_SYNC");
		pr_more_flags(p, &xlat_statx_flags, v & ~0x6000ull);
		return;
	}
	pr_type_flags(p, &xlat_statx_sync, 0x6000, &xlat_statx_flags, v);
}

static void pr_personality(struct call_print *p, uint64_t v)
{
	if ((uint32_t)v == UINT32_MAX)
		pr(p, "0xffffffff");
	else
		pr_type_flags(p, &xlat_personality, 0xff, &xlat_personality_flags, v);
}

static void pr_sched_policy(struct call_print *p, uint64_t v)
{
	if (!xlat_name(&xlat_sched_policy, v & ~0x40000000ull)) {
		pr_enum(p, &xlat_sched_policy, v);
		return;
	}
	pr_enum(p, &xlat_sched_policy, v & ~0x40000000ull);
	if (v & 0x40000000)
		pr(p, "|SCHED_RESET_ON_FORK");
}

static void pr_fan_init(struct call_print *p, uint64_t v)
{
	pr_type_flags(p, &xlat_fan_classes, 0xc, &xlat_fanotify_init, v);
}

/* Flags, and permission bits in octal behind them. */
static void pr_flags_mode(struct call_print *p, const struct xlat *set, uint64_t v)
{
	if (v & ~0777ull) {
		pr_flags(p, set, v & ~0777ull);
		pr(p, "|");
	}
	pr_mode(p, v & 0777);
}

static void pr_ipc_flags(struct call_print *p, uint64_t v)
{
	pr_flags_mode(p, &xlat_ipc_flags, v);
}

static void pr_shm_flags(struct call_print *p, uint64_t v)
{
	pr_flags_mode(p, &xlat_shm_flags, v);
}

static void pr_mount_flags(struct call_print *p, uint64_t v)
{
	if ((v & 0xffff0000) == 0xc0ed0000) {
		pr(p, "MS_MGC_VAL");
		v &= 0xffff;
		if (!v)
			return;
		pr(p, "|");
	}
	pr_flags(p, &xlat_mount_flags, v);
}

static void pr_mpol_mode(struct call_print *p, uint64_t v)
{
	pr_enum(p, &xlat_mpol_modes, v & 0x1fff);
	if (v & 0x8000)
		pr(p, "|MPOL_F_STATIC_NODES");
	if (v & 0x4000)
		pr(p, "|MPOL_F_RELATIVE_NODES");
	if (v & 0x2000)
		pr(p, "|MPOL_F_NUMA_BALANCING");
}

/* 3 << MFD_HUGE_SHIFT: the logarithm of a page size in the top bits. */
static void pr_memfd_flags(struct call_print *p, uint64_t v)
{
	uint64_t flags = v & 0x03ffffff, size = v >> 26;

	if (flags || !size)
		pr_flags(p, &xlat_memfd_flags, flags);
	if (size)
		pr(p, "%s%llu<<MFD_HUGE_SHIFT", flags ? "|" : "", (unsigned long long)size);
}

static void pr_syslog(struct call_print *p, uint64_t v)
{
	const char *name = xlat_name(&xlat_syslog_cmds, v);

	pr(p, "%d /* %s */", (int)v, name ? name : "SYSLOG_ACTION_???");
}

/* Special keyrings have negative numbers. */
static void pr_key(struct call_print *p, uint64_t v)
{
	const char *name = xlat_name(&xlat_key_specs, (uint32_t)v);

	if (name)
		pr(p, "%s", name);
	else
		pr(p, "%d", (int)v);
}

static void pr_fan_dirfd(struct call_print *p, uint64_t v)
{
	if ((int)v == -1)
		pr(p, "FAN_NOFD");
	else
		pr_dirfd(p, (int)v);
}

static void pr_ioprio(struct call_print *p, uint64_t v)
{
	pr(p, "IOPRIO_PRIO_VALUE(");
	pr_enum(p, &xlat_ioprio_class, v >> 13);
	pr(p, ", %u)", (unsigned)(v & 0x1fff));
}

static void (*const printers[XLAT_COUNT])(struct call_print *, uint64_t) = {
	[XLAT_open_flags] = pr_open_flags,
	[XLAT_sock_types] = pr_sock_type,
	[XLAT_mmap_flags] = pr_mmap_flags,
	[XLAT_futex_ops] = pr_futex_op,
	[XLAT_futex_wake_op] = pr_wake_op,
	[XLAT_clockids] = pr_clock,
	[XLAT_ioctls] = pr_ioctl,
	[XLAT_statx_flags] = pr_statx_flags,
	[XLAT_personality] = pr_personality,
	[XLAT_sched_policy] = pr_sched_policy,
	[XLAT_fanotify_init] = pr_fan_init,
	[XLAT_ipc_flags] = pr_ipc_flags,
	[XLAT_shm_flags] = pr_shm_flags,
	[XLAT_mount_flags] = pr_mount_flags,
	[XLAT_ioprio] = pr_ioprio,
	[XLAT_mpol_modes] = pr_mpol_mode,
	[XLAT_memfd_flags] = pr_memfd_flags,
	[XLAT_syslog_cmds] = pr_syslog,
	[XLAT_key_specs] = pr_key,
	[XLAT_fan_dirfd] = pr_fan_dirfd,
};

bool print_value(struct call_print *p, unsigned xlat, uint64_t value)
{
	if (xlat >= XLAT_COUNT || !printers[xlat])
		return false;
	printers[xlat](p, value);
	return true;
}
