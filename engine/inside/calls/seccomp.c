/*
 * A program's own seccomp filter must not hit the calls that the inside makes
 * for itself (arming a thread, asking the monitor).  So the filter is given a
 * few instructions in front that allow what comes from the inside's own code;
 * what the program does arrives from the gate's two ranges and meets the
 * program's filter unchanged.
 */
#include <asm/unistd.h>
#include <linux/audit.h>
#include <linux/errno.h>
#include <linux/filter.h>
#include <linux/mman.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <linux/signal.h>

#include "engine/core/host.h"
#include "engine/core/must.h"
#include "engine/inside/calls/seccomp.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/memory.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/signal/caught.h"

#define FRONT		6
#define IP_LOW		8	/* offsets in struct seccomp_data */
#define IP_HIGH		12
#define NR		0
#define FILTER_MAX	(BPF_MAXINSNS - FRONT)
#define MAP_BYTES	((BPF_MAXINSNS + 1) * sizeof(struct sock_filter))
_Static_assert(FRONT + FILTER_MAX <= BPF_MAXINSNS && BPF_MAXINSNS <= UINT16_MAX, "a program");

struct program {
	uint16_t len;
	uint16_t pad[3];
	uint64_t at;
};

_Static_assert(sizeof(struct program) == 16, "the kernel's struct sock_fprog");

static void front_fill(struct sock_filter *f)
{
	extern char own_start[], own_end[];
	uint64_t from = (uint64_t)own_start, to = (uint64_t)own_end;
	const struct sock_filter front[FRONT] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, IP_HIGH),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(from >> 32), 0, 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, IP_LOW),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, (uint32_t)from, 0, 2),
		BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, (uint32_t)to, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	/* One comparison of the upper half is good for all of our code. */
	MUST(from >> 32 == to >> 32);

	bytes_copy(f, front, sizeof(front));
}

/* The witness must know: what a filter stops is counted here and not there. */
static void filter_note(void)
{
	__atomic_fetch_add(&((struct area *)boot.area)->filters, 1, __ATOMIC_RELAXED);
}

/* Replaces the filter argument (in *arg) for one call to the kernel. */
static long filter_install(struct thread *t, uint64_t *arg, struct program *p)
{
	uint64_t was = *arg;
	long result;

	*arg = (uint64_t)p;
	result = call_kernel(t);
	*arg = was;
	if (result >= 0)
		filter_note();
	return result;
}

long serve_seccomp_filter(struct thread *t, uint64_t prog_at)
{
	struct program p;
	long room, result;

	if (target_in(&p, prog_at, sizeof(p)) || !p.len || p.len > FILTER_MAX)
		return call_kernel(t);
	room = own_map(MAP_BYTES);
	if (room < 0)
		return room;
	front_fill((struct sock_filter *)room);
	result = target_in((struct sock_filter *)room + FRONT, p.at,
			 p.len * sizeof(struct sock_filter));
	p.len = (uint16_t)(p.len + FRONT);
	p.at = (uint64_t)room;
	if (!result)
		result = filter_install(t, &t->frame.rdx, &p);
	OWN2(__NR_munmap, room, MAP_BYTES);
	return result;
}

#define ALLOW_CALL(nr) \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1), \
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

/* Strict mode as a filter, since the kernel's own would kill our calls. */
long serve_seccomp_strict(struct thread *t)
{
	struct sock_filter filter[FRONT + 10] = { { 0 } };
	const struct sock_filter rules[10] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, NR),
		ALLOW_CALL(__NR_read),
		ALLOW_CALL(__NR_write),
		ALLOW_CALL(__NR_exit),
		ALLOW_CALL(__NR_rt_sigreturn),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP | STRICT_TRAP),
	};
	struct program p = { FRONT + 10, { 0 }, (uint64_t)filter };

	t->answered = 1;
	filter_note();
	front_fill(filter);
	bytes_copy(filter + FRONT, rules, sizeof(rules));
	own_call(__NR_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0);
	return OWN3(__NR_seccomp, SECCOMP_SET_MODE_FILTER, 0, &p);
}
