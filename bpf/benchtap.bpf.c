// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * What watching from the kernel costs: a tap on sys_enter and sys_exit as the
 * engine would use it, for perf/bench.  Every call of the target process
 * becomes two 64-byte cells in a map that user space can mmap; with `copy`,
 * what write() writes and what read() reads follows its cell.
 *
 * The target and the counts are written by perf/hold.c, which also checks
 * that something was seen.  Nothing ever reads the cells.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

#define RING_BYTES	(1 << 20)
#define CELL_BYTES	64
#define COPY_MAX	4096

#define NR_READ		0
#define NR_WRITE	1

char LICENSE[] SEC("license") = "Dual MIT/GPL";

struct cell {
	__u64 sequence;
	__u32 call;
	__u32 length;
	__u64 args[6];
};

struct ring {
	__u8 bytes[RING_BYTES + CELL_BYTES + COPY_MAX];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ring);
} cells SEC(".maps");

const volatile bool copy;
__u32 target;
__u64 seen;
__u64 tail;

static struct cell *cell_take(__u32 length)
{
	const __u32 zero = 0;
	struct ring *ring = bpf_map_lookup_elem(&cells, &zero);
	const __u64 bytes = (CELL_BYTES + length + CELL_BYTES - 1) & -CELL_BYTES;
	__u64 at;

	if (!ring)
		return NULL;
	at = __sync_fetch_and_add(&tail, bytes);
	return (struct cell *)&ring->bytes[at & (RING_BYTES - 1) & -CELL_BYTES];
}

static __u32 copy_length(__u64 wanted)
{
	return wanted > COPY_MAX ? COPY_MAX : wanted;
}

static bool is_target(void)
{
	return bpf_get_current_pid_tgid() >> 32 == target;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(tap_enter, struct pt_regs *regs, long call)
{
	struct cell *cell;
	__u32 length = 0;

	if (!is_target())
		return 0;
	if (copy && call == NR_WRITE)
		length = copy_length(regs->dx);
	cell = cell_take(length);
	if (!cell)
		return 0;
	cell->sequence = seen++;
	cell->call = call;
	cell->length = length;
	cell->args[0] = regs->di;
	cell->args[1] = regs->si;
	cell->args[2] = regs->dx;
	cell->args[3] = regs->r10;
	cell->args[4] = regs->r8;
	cell->args[5] = regs->r9;
	if (length)
		bpf_probe_read_user(cell + 1, length, (void *)regs->si);
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(tap_exit, struct pt_regs *regs, long result)
{
	const long call = regs->orig_ax;
	struct cell *cell;
	__u32 length = 0;

	if (!is_target())
		return 0;
	if (copy && call == NR_READ && result > 0)
		length = copy_length(result);
	cell = cell_take(length);
	if (!cell)
		return 0;
	cell->sequence = seen;
	cell->call = call;
	cell->length = length;
	cell->args[0] = result;
	cell->args[1] = bpf_ktime_get_ns();
	if (length)
		bpf_probe_read_user(cell + 1, length, (void *)regs->si);
	return 0;
}
