/*
 * Sending threads of a process that stands through steps of the inside.  Whatever a thread is
 * at when we are killed, it finishes the step and takes its registers from its block, where
 * they are written first.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "engine/core/must.h"
#include "engine/outside/attach/guest.h"
#include "engine/outside/kernel/maps.h"
#include "engine/outside/session/memory.h"
#include "engine/outside/start/image.h"
#include "engine/outside/takeover/takeover.h"

#define PAGE		4096ull
#define ALL_BLOCKED	(~0ull)

int guest_open(struct guest *g, struct remote *r)
{
	struct maps maps = { 0 };
	uint64_t at = 0;

	g->memory = memory_open(g->pid);
	if (g->memory < 0)
		return g->memory;
	if (!maps_read(g->pid, &maps))
		at = stub_room(g->memory, &maps);
	maps_free(&maps);
	if (!at) {
		memory_close(g->memory);
		return -ENOSPC;
	}
	stub_begin(&g->stub, &g->crowd, at, g->memory, r);
	g->remote = r;
	return 0;
}

void guest_table_end(struct guest *g)
{
	if (g->page)
		REMOTE(g->remote, SYS_munmap, g->page, g->page_len);
	g->page = g->table = 0;
}

void guest_close(struct guest *g)
{
	guest_table_end(g);
	stub_end(&g->stub);
	memory_close(g->memory);
	g->memory = -1;
}

int guest_table_read(struct guest *g, void *to, size_t offset, size_t len)
{
	MUST(g->table && offset + len <= g->page_len - PAGE);
	return memory_read(g->memory, g->table + offset, to, len);
}

int guest_table_write(struct guest *g, const void *from, size_t offset, size_t len)
{
	MUST(g->table && offset + len <= g->page_len - PAGE);
	return memory_write(g->memory, g->table + offset, from, len);
}

int guest_word(struct guest *g, size_t offset, uint32_t value)
{
	MUST(g->base && offset < sizeof(struct boot));
	return memory_write(g->memory, g->base + inside_image()->boot + offset, &value,
			    sizeof(value));
}

static size_t row_at(unsigned i)
{
	return offsetof(struct attach, thread) + i * sizeof(struct attach_row);
}

/* A page for what calls point to, and behind it the table. */
int guest_table(struct guest *g)
{
	uint32_t threads = g->crowd.n;
	long at;
	int result;

	g->page_len = PAGE + ((row_at(threads) + PAGE - 1) & ~(PAGE - 1));
	at = REMOTE(g->remote, SYS_mmap, 0, g->page_len, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, (uint64_t)-1, 0);
	if (failed(at))
		return (int)at;
	g->page = g->remote->data = (uint64_t)at;
	g->table = g->page + PAGE;
	result = guest_table_write(g, &threads, offsetof(struct attach, threads), sizeof(threads));
	for (unsigned i = 0; i < threads && !result; i++) {
		const struct stander *s = &g->crowd.stander[i];
		struct attach_row row = {
			s->tid, 0, s->block, s->mask, s->rseq.rseq_abi_pointer,
			s->rseq.rseq_abi_size, s->rseq.signature,
		};

		result = guest_table_write(g, &row, row_at(i), sizeof(row));
	}
	return result;
}

/* Where it goes by itself. */
static int back_write(struct guest *g, const struct stander *s)
{
	const struct user_regs_struct *r = &s->regs;
	const struct attach_back back = {
		r->rax, r->rbx, r->rcx, r->rdx, r->rsi, r->rdi, r->rbp, r->rsp,
		r->r8, r->r9, r->r10, r->r11, r->r12, r->r13, r->r14, r->r15,
		r->eflags, r->rip, s->mask, 0,
	};

	return memory_write(g->memory, s->block + ATTACH_BACK, &back, sizeof(back));
}

static int step_begin(struct guest *g, struct stander *s, enum attach_step step)
{
	struct user_regs_struct regs = s->regs;
	uint64_t blocked = ALL_BLOCKED;

	regs.gs_base = s->block;
	regs.rip = g->base + inside_image()->attach_run;
	regs.rsp = s->block + BLOCK_STACK;
	regs.rdi = s->block;
	regs.rsi = g->table;
	regs.rdx = step;
	regs.eflags = 0x202;
	if (ptrace(PTRACE_SETREGS, s->tid, 0, &regs) < 0 ||
	    ptrace(PTRACE_SETSIGMASK, s->tid, 8, &blocked) < 0)
		return -errno;
	return 0;
}

/* It makes calls of its own until it is at the one that says that it is done. */
static int step_end(struct guest *g, const struct stander *s)
{
	const struct step_time time = step_time_begin(&g->crowd, s->tid);
	uint64_t done = g->base + inside_image()->attach_done;
	struct user_regs_struct regs = { 0 };
	int result = 0;

	while (!result && regs.rip != done) {
		result = stander_step_call(&g->crowd, &time);
		if (!result && ptrace(PTRACE_GETREGS, s->tid, 0, &regs) < 0)
			result = -errno;
	}
	/* To behind that call. */
	if (!result)
		result = stander_step_call(&g->crowd, &time);
	return result || g->leaves || !step_time_is_late(&time) ? result : -ETIME;
}

int guest_step(struct guest *g, unsigned who, enum attach_step step)
{
	struct stander *s = &g->crowd.stander[who];
	struct user_regs_struct regs = s->regs;
	uint32_t row = who;
	int result = back_write(g, s);

	MUST(who < g->crowd.n && s->block && step < ATTACH_STEPS);
	MUST(g->table || step == ATTACH_ARM || step == DETACH_DISARM);
	if (!result && g->table)
		result = guest_table_write(g, &row, offsetof(struct attach, row), sizeof(row));
	if (!result)
		result = step_begin(g, s, step);
	if (!result)
		result = step_end(g, s);
	regs.gs_base = s->block;
	if (stander_set(s, &regs, s->mask) && !result)
		result = -ESRCH;
	return result;
}

int guest_steps(struct guest *g, enum attach_step step)
{
	int result = 0;

	for (unsigned i = 0; i < g->crowd.n && !result; i++)
		if (g->crowd.stander[i].block)
			result = guest_step(g, i, step);
	return result;
}
