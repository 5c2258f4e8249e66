/*
 * The layout of a twin.  The kernel is brought to begin a follower's mappings where
 * the leader's begin: without randomization that place depends on the stack's
 * limit alone, which is set so for the length of the execve.  From there on both
 * kernels place the same mappings at the same addresses.  The program itself and
 * its stack are moved before they run; the heap's beginning is a number.
 */
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "engine/core/must.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/start/auxv.h"
#include "engine/outside/start/layout.h"

#define SHIFT_MAX	0x4000ull	/* by which it moves a stack's beginning about */
#define BELOW_STACK	512		/* bytes: nobody has anything there yet */
#define WORDS_MAX	0x20000		/* of arguments and environment */

static bool is_stack(const struct map *m)
{
	return !strcmp(m->path, "[stack]");
}

static bool of_program(const struct map *m, const struct layout *l)
{
	return m->inode && m->inode == l->inode && m->dev == l->dev;
}

void layout_read(const struct remote *r, const struct maps *m, struct layout *out)
{
	char name[64];
	struct stat st;

	*out = (struct layout){ .sp = r->regs.rsp, .brk = process_brk(r->pid) };
	snprintf(name, sizeof(name), "/proc/%d/exe", r->pid);
	if (stat(name, &st))
		return;
	out->dev = st.st_dev;
	out->inode = st.st_ino;
	for (size_t i = 0; i < m->n; i++) {
		const struct map *one = &m->map[i];

		/* Its zeroed data follow without a file. */
		if (of_program(one, out) || (out->len && out->program + out->len == one->start)) {
			out->program = out->program ? out->program : one->start;
			out->len = one->end - out->program;
		}
		if (is_stack(one))
			out->stack_end = one->end;
		else if (!out->stack_end && one->end > out->program + out->len)
			out->top = one->end;
	}
	if (!out->len || !out->stack_end || r->regs.rsp >= out->stack_end)
		out->top = 0;
}

static unsigned long persona_of(pid_t pid)
{
	unsigned long persona = 0;
	char name[64];
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%d/personality", pid);
	f = fopen(name, "re");
	if (f && fscanf(f, "%lx", &persona) != 1)
		persona = 0;
	if (f)
		fclose(f);
	return persona;
}

/* prlimit asks for a right that we may lack where the process has changed its user. */
static bool stack_limit_of(pid_t pid, struct rlimit *limit)
{
	static const char name[] = "Max stack size";
	char path[64], line[256], now[32], most[32];
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/limits", pid);
	f = fopen(path, "re");
	while (f && !found && fgets(line, sizeof(line), f))
		found = !strncmp(line, name, sizeof(name) - 1) &&
			sscanf(line + sizeof(name) - 1, "%31s %31s", now, most) == 2;
	if (f)
		fclose(f);
	if (!found)
		return false;
	limit->rlim_cur = now[0] == 'u' ? RLIM_INFINITY : strtoull(now, NULL, 10);
	limit->rlim_max = most[0] == 'u' ? RLIM_INFINITY : strtoull(most, NULL, 10);
	return true;
}

struct layout_wish layout_wish(pid_t pid, const struct layout *like)
{
	struct layout_wish wish = { .like = *like, .persona = persona_of(pid) };

	if (!stack_limit_of(pid, &wish.stack))
		wish.like.top = 0;
	return wish;
}

void layout_ask(const struct layout *like)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_STACK, &limit))
		return;
	limit.rlim_cur = layout_stack_limit(like, limit.rlim_cur);
	limit.rlim_max = limit.rlim_cur > limit.rlim_max ? limit.rlim_cur : limit.rlim_max;
	if (limit.rlim_cur && !setrlimit(RLIMIT_STACK, &limit))
		personality((unsigned long)personality(0xffffffff) | ADDR_NO_RANDOMIZE);
}

static void asking_undo(struct remote *r, const struct layout_wish *wish)
{
	uint64_t at = r->regs.rsp - BELOW_STACK;

	if (!memory_write(r->memory, at, &wish->stack, sizeof(wish->stack)))
		REMOTE(r, SYS_prlimit64, 0, RLIMIT_STACK, at, 0);
	REMOTE(r, SYS_personality, wish->persona);
}

static bool is_free(const struct maps *m, uint64_t from, uint64_t to)
{
	for (size_t i = 0; i < m->n; i++)
		if (m->map[i].start < to && from < m->map[i].end)
			return false;
	return true;
}

static bool map_move(struct remote *r, const struct map *m, uint64_t by)
{
	uint64_t len = m->end - m->start;
	long at = REMOTE(r, SYS_mremap, m->start, len, len, MREMAP_MAYMOVE | MREMAP_FIXED,
			 m->start + by);

	return at == (long)(m->start + by);
}

/* Moves the mappings that lie in [from, to); all of them or none. */
static uint64_t range_move(struct remote *r, const struct maps *m, uint64_t from, uint64_t to,
			   uint64_t by)
{
	size_t i, moved = 0;

	if (!by || !is_free(m, from + by, to + by))
		return 0;
	for (i = 0; i < m->n; i++) {
		if (m->map[i].start < from || m->map[i].end > to)
			continue;
		if (!map_move(r, &m->map[i], by))
			break;
		moved++;
	}
	MUST(moved <= i);
	if (i == m->n)
		return moved ? by : 0;
	for (; moved && i--;) {
		struct map back = m->map[i];

		if (back.start < from || back.end > to)
			continue;
		back.start += by;
		back.end += by;
		map_move(r, &back, -by);
		moved--;
	}
	MUST(!moved);		/* all of them stand where they stood, or none can */
	return 0;
}

static bool word_add(struct remote *r, uint64_t at, uint64_t by)
{
	uint64_t word;

	if (memory_read(r->memory, at, &word, sizeof(word)) || !word)
		return false;
	word += by;
	return !memory_write(r->memory, at, &word, sizeof(word));
}

static void vector_move(struct remote *r, uint64_t at, const struct layout_moves *moved)
{
	uint64_t pair[2];

	for (; !memory_read(r->memory, at, pair, sizeof(pair)) && pair[0] != AT_NULL; at += 16) {
		switch (pair[0]) {
		case AT_PHDR:
		case AT_ENTRY:
			word_add(r, at + 8, moved->program);
			break;
		case AT_EXECFN:
			word_add(r, at + 8, moved->stack);
			break;
		case AT_RANDOM:
		case AT_PLATFORM:
		case AT_BASE_PLATFORM:
			word_add(r, at + 8, moved->stack + moved->block);
			break;
		}
	}
}

/* The pointers of a stack that has moved: arguments, environment, auxiliary vector. */
static void pointers_move(struct remote *r, const struct layout_moves *moved)
{
	uint64_t at = r->regs.rsp + 8;

	for (int lists = 0, words = 0; lists < 2 && words < WORDS_MAX; words++, at += 8)
		if (!word_add(r, at, moved->stack))
			lists++;	/* its NULL */
	vector_move(r, at, moved);
}

/*
 * Below the strings, whose place follows from the stack's end, the kernel leaves a
 * random gap: the block under it is moved down to where the leader's begins.
 */
static void block_move(struct remote *r, const struct layout *like, struct layout_moves *moved)
{
	uint64_t strings = process_arguments(r->pid) + moved->stack, from = r->regs.rsp;
	uint8_t block[SHIFT_MAX * 4];
	uint64_t len = strings - from, by = like->sp - from;

	if (!moved->stack || strings < from || len > sizeof(block) || -by > SHIFT_MAX ||
	    memory_read(r->memory, from, block, len) ||
	    memory_write(r->memory, like->sp, block, len))
		return;
	moved->block = by;
	r->regs.rsp = like->sp;
}

/* Not one of fixed addresses, nor one without a loader: it stands in its own code. */
static bool can_move(const struct remote *r, const struct layout *own)
{
	Elf64_Ehdr head;

	return r->regs.rip - own->program >= own->len &&
	       !memory_read(r->memory, own->program, &head, sizeof(head)) && head.e_type == ET_DYN;
}

void layout_settle(struct remote *r, const struct maps *m, const struct layout_wish *wish,
		   struct layout_moves *moved)
{
	const struct layout *like = &wish->like;
	struct layout own;

	*moved = (struct layout_moves){ 0 };
	if (!like->top)
		return;
	MUST(!r->begun);		/* what is moved has yet to run */
	asking_undo(r, wish);
	layout_read(r, m, &own);
	if (!own.top)
		return;
	if (can_move(r, &own))
		moved->program = range_move(r, m, own.program, own.program + own.len,
					    like->program - own.program);
	for (size_t i = 0; i < m->n; i++)
		if (is_stack(&m->map[i]))
			moved->stack = range_move(r, m, m->map[i].start, m->map[i].end,
						  like->stack_end - own.stack_end);
	r->regs.rsp += moved->stack;
	block_move(r, like, moved);
	pointers_move(r, moved);
	if (own.inode == like->inode && own.dev == like->dev &&
	    own.program + moved->program == like->program)
		moved->brk = like->brk;
	say_log("layout", "%d: program %#lx of %#lx, stack %#lx of %#lx, mappings under %#lx of "
		"%#lx", r->pid, own.program + moved->program, like->program,
		(uint64_t)r->regs.rsp, like->sp, own.top, like->top);
}
