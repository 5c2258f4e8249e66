// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * The witness: counts in the kernel every system call of a session's tasks, by
 * number and by where it came from.  It shares nothing with the inside but the
 * addresses it is given, so that its sums can prove the inside's.
 *
 * The invariant: a process is in `rows` from before its first call as a member
 * of the session until after its last one.  User space adds the first process
 * while it is stopped before its execve; a fork copies the parent's row before
 * the child can run; threads share their process's row; an execve un-holds the
 * row, before the new image makes a call, until user space gives the new
 * image's spans; the death of the last thread drops it.
 *
 * Syscall User Dispatch comes before sys_enter: a call that the net catches is
 * seen here only once, when the gate makes it again.  The vsyscall page never
 * reaches sys_enter and has a tracepoint of its own; the net cannot catch it
 * either.  A call that a signal cut short may be made again by the kernel without
 * the inside's knowledge: `interrupted` counts those signals, as a bound of what
 * kernel and inside may differ by.
 *
 * Every task of the machine runs sys_enter: one that is not in a session must
 * leave after one look-up.  Only counts leave from here, never contents.
 */
#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "bpf/audit.h"

#define INSN_BYTES	2	/* syscall, sysenter, int 0x80 */
#define COMPAT_CALL	0x0002	/* TS_COMPAT, a macro and so not in the BTF */
#define VSYSCALL_PAGE	0xffffffffff600000ull
#define PAGE_MASK	(~0xfffull)
#define RESTART_FIRST	512	/* ERESTARTSYS */
#define RESTART_LAST	516	/* ERESTART_RESTARTBLOCK */
#define NR_EXIT		60
#define NR_EXIT_GROUP	231

char LICENSE[] SEC("license") = "Dual MIT/GPL";

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, AUDIT_PROCS);
	__type(key, __u32);
	__type(value, struct audit_row);
} rows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, AUDIT_WHERES);
	__type(key, __u32);
	__type(value, struct audit_table);
} tables SEC(".maps");

struct audit_stray_row stray[AUDIT_STRAYS];
__u64 strays;
__u64 lost;		/* processes that found `rows` full */

static __u32 current_tgid(void)
{
	return bpf_get_current_pid_tgid() >> 32;
}

/* Atomic though per CPU: the kernel may preempt this program. */
static void count(__u32 where, long nr)
{
	struct audit_table *table = bpf_map_lookup_elem(&tables, &where);
	__u64 slot = nr + 1;

	if (!table)
		return;
	if (slot >= AUDIT_SLOTS)
		slot = 0;
	__sync_fetch_and_add(&table->n[slot], 1);
}

static void remember(__u32 tgid, __u32 where, long nr, __u64 ip)
{
	__u64 at = __sync_fetch_and_add(&strays, 1);
	volatile struct audit_stray_row *row = &stray[at % AUDIT_STRAYS];

	row->seq = 0;
	row->ip = ip;
	row->nr = nr;
	row->tgid = tgid;
	row->where = where;
	row->seq = at + 1;
}

static __u32 place(const struct audit_row *row, __u64 ip)
{
	if (!row->held)
		return AUDIT_BEFORE;
#pragma unroll
	for (int i = 0; i < AUDIT_SPANS; i++)
		if (ip >= row->span[i].start && ip < row->span[i].end)
			return i;
	if ((ip & PAGE_MASK) == VSYSCALL_PAGE)
		return AUDIT_VSYSCALL;
	return AUDIT_ELSEWHERE;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(enter, struct pt_regs *regs, long nr)
{
	__u32 tgid = current_tgid();
	struct audit_row *row = bpf_map_lookup_elem(&rows, &tgid);
	__u64 ip;
	__u32 where;

	if (!row)
		return 0;
	ip = regs->ip - INSN_BYTES;
	if (bpf_get_current_task_btf()->thread_info.status & COMPAT_CALL)
		where = AUDIT_COMPAT;
	else
		where = place(row, ip);
	count(where, nr);
	if (row->held && where > AUDIT_BEFORE)
		remember(tgid, where, nr, ip);
	return 0;
}

/* which: the entry of the page, 0 to 2, 1024 bytes apart. */
SEC("tp_btf/emulate_vsyscall")
int BPF_PROG(vsyscall, int which)
{
	static const short number[4] = { 96, 201, 309, -1 };
	__u32 tgid = current_tgid();
	struct audit_row *row = bpf_map_lookup_elem(&rows, &tgid);
	__u64 ip = VSYSCALL_PAGE + ((which & 3) << 10);
	long nr = number[which & 3];

	if (!row)
		return 0;
	if (!row->held) {
		count(AUDIT_BEFORE, nr);
		return 0;
	}
	count(AUDIT_VSYSCALL, nr);
	remember(tgid, AUDIT_VSYSCALL, nr, ip);
	return 0;
}

/* A result that only the kernel sees: it may make the call again. */
SEC("tp_btf/sys_exit")
int BPF_PROG(interrupted, struct pt_regs *regs, long result)
{
	__u32 tgid = current_tgid();

	if (result > -RESTART_FIRST || result < -RESTART_LAST)
		return 0;
	if (bpf_map_lookup_elem(&rows, &tgid))
		count(AUDIT_AGAIN, regs->orig_ax);
	return 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(forked, struct task_struct *parent, struct task_struct *child)
{
	__u32 from = parent->tgid, to = child->tgid;
	struct audit_row *row;

	if (from == to)
		return 0;
	row = bpf_map_lookup_elem(&rows, &from);
	if (row && bpf_map_update_elem(&rows, &to, row, BPF_ANY))
		__sync_fetch_and_add(&lost, 1);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(replaced, struct task_struct *task)
{
	__u32 tgid = task->tgid;
	struct audit_row *row = bpf_map_lookup_elem(&rows, &tgid);

	if (row)
		row->held = 0;
	return 0;
}

/* Two last threads may both see 0: the second delete finds nothing. */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(ended, struct task_struct *task)
{
	__u32 tgid = task->tgid;
	struct pt_regs *regs;
	long nr;

	if (!bpf_map_lookup_elem(&rows, &tgid))
		return 0;
	/* A thread that is killed in a call never tells the inside of it. */
	regs = (void *)bpf_task_pt_regs(task);
	nr = regs->orig_ax;
	if (nr >= 0 && nr != NR_EXIT && nr != NR_EXIT_GROUP)
		count(AUDIT_AGAIN, nr);
	if (task->signal->live.counter == 0)
		bpf_map_delete_elem(&rows, &tgid);
	return 0;
}
