/*
 * Instructions that ask the machine and not the kernel: the time stamp counter and
 * random numbers.  Twins must be given the same, or the first TLS handshake differs
 * (libcrypto stirs the counter into its random numbers).  In a session with
 * followers the planner marks them as it marks calls that are not patched; here each
 * becomes a soft call of the table: told by a leader, answered in a follower.
 *
 * All of it happens on our signal stack with signals blocked.  It is no boundary:
 * a signal that waits goes on waiting for a call.
 */
#include <asm/unistd.h>
#include <linux/prctl.h>
#include <linux/signal.h>

#include "engine/core/must.h"
#include "engine/inside/gate/above.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/memory.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/signal/insn.h"
#include "engine/inside/signal/leave.h"
#include "engine/inside/signal/ucontext.h"

#define PREFIXES_MAX	4
#define REX_W		0x08
#define REX_B		0x01
#define PREFIX_16	0x66
#define FLAGS_RANDOM	0x8d5ull	/* CF PF AF ZF SF OF: all but CF become 0 */
#define RANDOM_TRIES	100
#define STEP		1000		/* of a counter that the stream does not tell */
_Static_assert(CODE_LOOK >= PREFIXES_MAX + 3, "insn_read reads so far");
_Static_assert(offsetof(struct gregs, r15) == offsetof(struct gregs, r8) + 7 * sizeof(uint64_t),
	       "reg_of counts from r8 on");

enum machine { COUNTER, COUNTER_CPU, RANDOM, SEED, NOTHING };

struct insn {
	enum machine what;
	uint8_t len, rex, reg;
	bool is_16;
};

/* Behind its mark the instruction's other bytes are as they were. */
static struct insn insn_read(uint64_t rip)
{
	uint8_t code[CODE_LOOK];
	const uint8_t *p = code_at(rip, code);
	struct insn i = { .what = NOTHING };
	int n = 0;

	for (; n < PREFIXES_MAX && *p != MARK_INSN; n++, p++) {
		if (*p == PREFIX_16)
			i.is_16 = true;
		else if ((*p & 0xf0) == 0x40)
			i.rex = *p;
		else
			return i;
	}
	if (*p != MARK_INSN)
		return i;
	if (p[1] == 0x31)
		i.what = COUNTER;
	else if (p[1] == 0x01 && p[2] == 0xf9)
		i.what = COUNTER_CPU;
	else if (p[1] == 0xc7 && p[2] >= 0xf0)
		i.what = p[2] < 0xf8 ? RANDOM : SEED;
	i.reg = (uint8_t)((i.rex & REX_B) << 3 | (p[2] & 7));
	i.len = (uint8_t)(n + (i.what == COUNTER ? 2 : 3));
	return i;
}

static uint64_t ask(enum machine what)
{
	uint64_t value = 0;
	uint8_t got = 0;

	if (what <= COUNTER_CPU)
		return __builtin_ia32_rdtsc();
	for (int i = 0; i < RANDOM_TRIES && !got; i++) {
		if (what == SEED)
			asm volatile("rdseed %0; setc %1" : "=r"(value), "=q"(got) : : "cc");
		else
			asm volatile("rdrand %0; setc %1" : "=r"(value), "=q"(got) : : "cc");
		__builtin_ia32_pause();
	}
	return value;
}

static uint64_t *reg_of(struct gregs *r, unsigned n)
{
	uint64_t *const low[] = { &r->rax, &r->rcx, &r->rdx, &r->rbx,
				  &r->rsp, &r->rbp, &r->rsi, &r->rdi };

	MUST(n < 16);

	return n < 8 ? low[n] : &r->r8 + (n - 8);
}

static void give_random(struct gregs *r, const struct insn *i, uint64_t value)
{
	uint64_t *to = reg_of(r, i->reg);

	if (i->rex & REX_W)
		*to = value;
	else if (i->is_16)
		*to = (*to & ~0xffffull) | (uint16_t)value;
	else
		*to = (uint32_t)value;
	r->flags = (r->flags & ~FLAGS_RANDOM) | 1;
}

/* Which processor it was is nobody's business: twins run on different ones. */
static void give_counter(struct gregs *r, const struct insn *i, uint64_t value)
{
	r->rax = (uint32_t)value;
	r->rdx = value >> 32;
	if (i->what == COUNTER_CPU)
		r->rcx = 0;
}

/* What a follower gets where its leader asked less often than it does. */
static uint64_t counter_on(uint64_t told)
{
	static uint64_t last;

	/* Relaxed: a counter that is read by two threads at once says little. */
	if (told)
		__atomic_store_n(&last, told, __ATOMIC_RELAXED);
	return told ? told : __atomic_add_fetch(&last, STEP, __ATOMIC_RELAXED);
}

static uint64_t answer(struct thread *t, enum machine what)
{
	long nr = what <= COUNTER_CPU ? CALL_rdtsc : CALL_rdrand;
	int64_t value = 0;

	if (local_site(t))
		return ask(what);
	if (!t->following)
		value = (int64_t)ask(what);
	if (!above.soft(t, nr, &value) && t->following && what > COUNTER_CPU)
		value = (int64_t)ask(what);
	return t->following && what <= COUNTER_CPU ? counter_on((uint64_t)value) : (uint64_t)value;
}

/* The program has the counter fault (PR_SET_TSC). */
static bool counter_faults(void)
{
	int how = 0;

	return OWN2(__NR_prctl, PR_GET_TSC, &how) >= 0 && how == PR_TSC_SIGSEGV;
}

/*
 * A mark in the place of an instruction that would have been a fault of the program's:
 * it is made that one.
 */
bool insn_faults(struct thread *t, int *sig, uint8_t *info, const struct ucontext_raw *uc)
{
	struct { int32_t signo, error, code, pad; uint64_t address; } fault = {
		SIGSEGV, 0, SI_KERNEL, 0, 0 };

	if (*sig != SIGILL || info_int(info, INFO_CODE) <= 0 || t->busy ||
	    insn_read(uc->regs.rip).what > COUNTER_CPU || !counter_faults())
		return false;
	*sig = SIGSEGV;
	bytes_copy(info, &fault, sizeof(fault));
	return true;
}

/* A marked instruction was met; true when that is what it was. */
bool insn_caught(struct thread *t, struct ucontext_raw *uc)
{
	struct gregs *r = &uc->regs;
	struct insn i = insn_read(r->rip);
	uint64_t value;

	if (i.what == NOTHING || t->busy)
		return false;
	t->frame.rsp = r->rsp;
	t->frame.site_end = r->rip + i.len;
	t->call_slot = (i.what <= COUNTER_CPU ? CALL_rdtsc : CALL_rdrand) + 1;
	value = answer(t, i.what);
	if (i.what <= COUNTER_CPU)
		give_counter(r, &i, value);
	else
		give_random(r, &i, value);
	r->rip += i.len;
	return true;
}
