/*
 * Printing processes and memory: argument lists, credentials, CPU sets,
 * clone's arguments, System V objects.
 */
#include <linux/sched.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/utsname.h>

#include "engine/outside/print/print_parts.h"

#define ENV_LIMIT	65536	/* a longer environment is not counted to its end */

/* argv in full (32 strings), envp as a count. */
static void pr_argv(struct call_print *p, uint64_t addr)
{
	uint64_t s;

	for (unsigned i = 0; ; i++) {
		if (!mem_get(p, addr + i * 8, &s, sizeof(s))) {
			if (!i)
				pr_addr(p, addr);
			else
				pr(p, ", ... /* 0x%llx */]", (unsigned long long)(addr + i * 8));
			return;
		}
		if (!s) {
			pr(p, i ? "]" : "[]");
			return;
		}
		pr(p, i ? ", " : "[");
		if (i == ARRAY_LIMIT) {
			pr(p, "...]");
			return;
		}
		pr_string(p, s);
	}
}

static void pr_envp(struct call_print *p, uint64_t addr)
{
	unsigned count = 0;
	uint64_t s;

	pr_addr(p, addr);
	for (; count < ENV_LIMIT; count++) {
		if (!mem_get(p, addr + count * 8ull, &s, sizeof(s))) {
			pr(p, count ? " /* %u vars, unterminated */" : "", count);
			return;
		}
		if (!s)
			break;
	}
	pr(p, " /* %u var%s */", count, count == 1 ? "" : "s");
}

void pr_strv(struct call_print *p, uint64_t addr, uint64_t count, unsigned arg)
{
	(void)count;
	if (p->row->args[arg].name[0] == 'e')
		pr_envp(p, addr);
	else
		pr_argv(p, addr);
}

void pr_utsname(struct call_print *p, const void *data)
{
	const struct utsname *u = data;

	pr(p, "{sysname=");
	pr_quoted(p, u->sysname, strnlen(u->sysname, sizeof(u->sysname)));
	pr(p, ", nodename=");
	pr_quoted(p, u->nodename, strnlen(u->nodename, sizeof(u->nodename)));
	pr(p, ", ...}");
}

static void pr_caps(struct call_print *p, uint64_t caps)
{
	const char *sep = "";

	if (!caps) {
		pr(p, "0");
		return;
	}
	for (unsigned i = 0; i < 64; i++) {
		const char *name = xlat_name(&xlat_cap_names, i);

		if (!(caps >> i & 1) || !name)
			continue;
		pr(p, "%s1<<%s", sep, name);
		sep = "|";
		caps &= ~(1ull << i);
	}
	if (caps)
		pr(p, "%s%#llx", sep, (unsigned long long)caps);
}

void pr_caphdr(struct call_print *p, const void *data)
{
	const uint32_t *h = data;

	pr(p, "{version=");
	pr_enum(p, &xlat_cap_versions, h[0]);
	pr(p, ", pid=%d}", (int)h[1]);
}

void pr_capdata(struct call_print *p, const void *data)
{
	static const char *const names[] = { "effective", "permitted", "inheritable" };
	const uint32_t *d = data;

	for (unsigned i = 0; i < 3; i++) {
		pr(p, "%s%s=", i ? ", " : "{", names[i]);
		pr_caps(p, d[i] | (uint64_t)d[i + 3] << 32);
	}
	pr(p, "}");
}

void pr_sched_param(struct call_print *p, const void *data)
{
	pr(p, "[%d]", *(const int *)data);
}

void pr_sched_attr(struct call_print *p, uint64_t addr, uint64_t count, unsigned arg)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t prio;
		uint64_t runtime, deadline, period;
		uint32_t util_min, util_max;
	} a;

	(void)count;
	memset(&a, 0, sizeof(a));
	if ((p->row->args[arg].dir == DIR_OUT && call_failed(p)) || !mem_get(p, addr, &a, 48)) {
		pr_addr(p, addr);
		return;
	}
	if (a.size >= sizeof(a) && !mem_get(p, addr, &a, sizeof(a)))
		a.size = 48;
	pr(p, "{size=%u, sched_policy=", a.size);
	pr_enum(p, &xlat_sched_policy, a.policy);
	pr(p, ", sched_flags=");
	pr_flags(p, &xlat_sched_flags, a.flags);
	pr(p, ", sched_nice=%d, sched_priority=%u, sched_runtime=%llu, sched_deadline=%llu, "
	   "sched_period=%llu", a.nice, a.prio, (unsigned long long)a.runtime,
	   (unsigned long long)a.deadline, (unsigned long long)a.period);
	if (a.size >= sizeof(a))
		pr(p, ", sched_util_min=%u, sched_util_max=%u", a.util_min, a.util_max);
	pr(p, a.size > sizeof(a) ? ", ...}" : "}");
}

/* The bits that are set, as numbers. */
void pr_cpumask(struct call_print *p, uint64_t addr, uint64_t count, unsigned arg)
{
	uint8_t mask[1024];
	const char *sep = "";

	if (p->row->args[arg].dir == DIR_OUT && call_failed(p)) {
		pr_addr(p, addr);
		return;
	}
	count = ((uint32_t)count + 7ull) & ~7ull;
	if (count > sizeof(mask))
		count = sizeof(mask);
	if (!mem_get(p, addr, mask, count)) {
		pr_addr(p, addr);
		return;
	}
	pr(p, "[");
	for (unsigned i = 0; i < count * 8; i++) {
		if (!(mask[i / 8] >> (i % 8) & 1))
			continue;
		pr(p, "%s%u", sep, i);
		sep = " ";
	}
	pr(p, "]");
}

/* A task's name has room for 15 bytes; strace reads no more either. */
void pr_taskname(struct call_print *p, uint64_t addr, uint64_t count, unsigned arg)
{
	char name[15];
	size_t got = call_failed(p) ? 0 : mem_get_some(p, addr, name, sizeof(name));
	size_t len = strnlen(name, got);

	(void)count;
	if (!got || (len == got && got < sizeof(name))) {
		pr_addr(p, addr);
		return;
	}
	pr_quoted(p, name, len);
	if (len == sizeof(name) && p->row->args[arg].dir == DIR_IN)
		pr(p, "...");
}

void pr_fprog(struct call_print *p, const void *data)
{
	const struct { uint16_t len; uint64_t filter; } *f = data;

	pr(p, "{len=%u, filter=", f->len);
	pr_addr(p, f->filter);
	pr(p, "}");
}

void pr_landlock(struct call_print *p, uint64_t addr, uint64_t count, unsigned arg)
{
	uint64_t fs;

	(void)arg;
	if (count < sizeof(fs) || !mem_get(p, addr, &fs, sizeof(fs))) {
		pr_addr(p, addr);
		return;
	}
	pr(p, "{handled_access_fs=");
	pr_flags(p, &xlat_landlock_access, fs);
	pr(p, count > sizeof(fs) ? ", ...}" : "}");
}

void pr_sembuf(struct call_print *p, const void *data)
{
	const struct sembuf *s = data;

	pr(p, "{sem_num=%u, sem_op=%d, sem_flg=", s->sem_num, s->sem_op);
	pr_flags(p, &xlat_sem_flags, (uint16_t)s->sem_flg);
	pr(p, "}");
}

void pr_futex_waitv(struct call_print *p, const void *data)
{
	const struct { uint64_t val, uaddr; uint32_t flags, pad; } *w = data;

	pr(p, "{val=%#llx, uaddr=", (unsigned long long)w->val);
	pr_addr(p, w->uaddr);
	pr(p, ", flags=");
	pr_flags(p, &xlat_futex_waitv_flags, w->flags);
	if (w->pad)
		pr(p, ", __reserved=%#x", w->pad);
	pr(p, "}");
}

void pr_shmid(struct call_print *p, const void *data)
{
	const struct shmid_ds *s = data;

	pr(p, "{shm_perm={uid=%u, gid=%u, mode=%#o, key=%u, cuid=%u, cgid=%u}, shm_segsz=%llu, "
	   "shm_cpid=%d, shm_lpid=%d, shm_nattch=%llu, shm_atime=%llu, shm_dtime=%llu, "
	   "shm_ctime=%llu}", s->shm_perm.uid, s->shm_perm.gid, s->shm_perm.mode,
	   s->shm_perm.__key, s->shm_perm.cuid, s->shm_perm.cgid,
	   (unsigned long long)s->shm_segsz, s->shm_cpid, s->shm_lpid,
	   (unsigned long long)s->shm_nattch, (unsigned long long)s->shm_atime,
	   (unsigned long long)s->shm_dtime, (unsigned long long)s->shm_ctime);
}

void pr_msgbuf(struct call_print *p, uint64_t addr, uint64_t count, unsigned arg)
{
	int64_t type;

	if (p->row->args[arg].dir == DIR_OUT && call_failed(p)) {
		pr_addr(p, addr);
		return;
	}
	if (!pr_fetch(p, addr, &type, sizeof(type)))
		return;
	pr(p, "{mtype=%lld, mtext=", (long long)type);
	pr_buffer(p, addr + 8, count);
	pr(p, "}");
}

static void pr_clone_flags(struct call_print *p, uint64_t flags)
{
	uint64_t newer = flags & 0x300000000ull, rest = flags & ~newer;

	if (rest || !newer)
		pr_flags(p, &xlat_clone_flags, rest);
	if (newer) {
		pr(p, rest ? "|" : "");
		pr_flags(p, &xlat_clone3_flags, newer);
	}
}

struct clone3 {
	uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
	uint64_t set_tid, set_tid_size, cgroup;
};
_Static_assert(sizeof(struct clone3) == 88, "the kernel's: CLONE_ARGS_SIZE_VER2");

/* What clone3 wrote through the pointers in its arguments. */
static void pr_clone_results(struct call_print *p, const struct clone3 *c)
{
	const char *sep = " => {";
	int value;

	if (call_failed(p))
		return;
	if (c->flags & CLONE_PIDFD && mem_get(p, c->pidfd, &value, sizeof(value))) {
		pr(p, "%spidfd=[%d]", sep, value);
		sep = ", ";
	}
	if (c->flags & CLONE_PARENT_SETTID && mem_get(p, c->parent_tid, &value, sizeof(value))) {
		pr(p, "%sparent_tid=[%d]", sep, value);
		sep = ", ";
	}
	if (sep[0] == ',')
		pr(p, "}");
}

static void pr_set_tid(struct call_print *p, const struct clone3 *c)
{
	int tid;

	pr(p, ", set_tid=");
	if (!c->set_tid || !c->set_tid_size || c->set_tid_size > 32 ||
	    !mem_get(p, c->set_tid, &tid, sizeof(tid))) {
		pr_addr(p, c->set_tid);
	} else {
		for (uint64_t i = 0; i < c->set_tid_size; i++)
			if (mem_get(p, c->set_tid + i * 4, &tid, sizeof(tid)))
				pr(p, "%s%d", i ? ", " : "[", tid);
		pr(p, "]");
	}
	pr(p, ", set_tid_size=%llu", (unsigned long long)c->set_tid_size);
}

void pr_clone_args(struct call_print *p, uint64_t addr, uint64_t count, unsigned arg)
{
	struct clone3 c;

	(void)arg;
	memset(&c, 0, sizeof(c));
	if (call_failed(p))
		return;
	if (count < 64 || !mem_get(p, addr, &c, count < sizeof(c) ? count : sizeof(c))) {
		pr_addr(p, addr);
		return;
	}
	if (p->exiting) {
		pr_clone_results(p, &c);
		return;
	}
	pr(p, "{flags=");
	pr_clone_flags(p, c.flags);
	if (c.flags & CLONE_PIDFD)
		pr(p, ", pidfd=%#llx", (unsigned long long)c.pidfd);
	if (c.flags & (CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID))
		pr(p, ", child_tid=%#llx", (unsigned long long)c.child_tid);
	if (c.flags & CLONE_PARENT_SETTID)
		pr(p, ", parent_tid=%#llx", (unsigned long long)c.parent_tid);
	pr(p, ", exit_signal=");
	pr_signal(p, c.exit_signal);
	pr(p, ", stack=");
	pr_addr(p, c.stack);
	pr(p, ", stack_size=%#llx", (unsigned long long)c.stack_size);
	if (c.flags & CLONE_SETTLS)
		pr(p, ", tls=%#llx", (unsigned long long)c.tls);
	if (c.set_tid_size || c.set_tid)
		pr_set_tid(p, &c);
	if (c.flags & 0x200000000ull || c.cgroup)
		pr(p, ", cgroup=%llu", (unsigned long long)c.cgroup);
	if (count > sizeof(c))
		pr_tail(p, addr, sizeof(c), count);
	pr(p, "}");
}
