/*
 * Many calls in few stops.  Each stop of a tracee costs two changes of context and a
 * handful of calls of ours, so what need not be looked at between goes at one go: code for
 * all of the calls is written over the page that the tracee stands in, and taken out again
 * when it has run.  A call may use what earlier ones came to; one that must not fail leads
 * to the part behind the next stop that cleans up, or to that stop.
 *
 * Results and what the calls point to lie below the tracee's stack, which the kernel has
 * made room for.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>

#include "engine/core/must.h"
#include "engine/outside/kernel/remote.h"

#define PAGE		4096ull
#define FAILS		0xfffffffffffff000ull	/* at and above: an errno */

/* rdi, rsi, rdx, r10, r8, r9: as `mov $imm64`, and with the register as (%rax)'s partner. */
static const uint8_t move_code[6][2] = {
	{ 0x48, 0xbf }, { 0x48, 0xbe }, { 0x48, 0xba },
	{ 0x49, 0xba }, { 0x49, 0xb8 }, { 0x49, 0xb9 },
};
static const uint8_t with_rax[6][2] = {
	{ 0x48, 0x38 }, { 0x48, 0x30 }, { 0x48, 0x10 },
	{ 0x4c, 0x10 }, { 0x4c, 0x00 }, { 0x4c, 0x08 },
};

static uint64_t results_at(const struct remote *r)
{
	return batch_data(r) + BATCH_DATA;
}

static void put(struct remote_batch *b, const void *bytes, size_t n)
{
	if (b->len + n > sizeof(b->code))
		b->full = true;
	else
		memcpy(b->code + b->len, bytes, n);
	b->len += n;
}

static void put_value(struct remote_batch *b, const void *opcode, size_t n, uint64_t value,
		      size_t bytes)
{
	put(b, opcode, n);
	put(b, &value, bytes);
}

static void put_argument(struct remote_batch *b, const struct batch_call *c, int i)
{
	uint8_t load[3] = { with_rax[i][0], c->of[i] == OF_WORD ? 0x63 : 0x03, with_rax[i][1] };
	uint64_t from = c->of[i] == OF_WORD ? c->arg[i] :
			results_at(b->r) + (c->of[i] - OF_RESULT) * sizeof(uint64_t);

	if (c->of[i] != OF_WORD)
		put_value(b, move_code[i], 2, c->arg[i], 8);
	if (c->of[i] == OF_VALUE)
		return;
	put_value(b, "\x48\xb8", 2, from, 8);		/* mov $from,%rax */
	put(b, load, sizeof(load));			/* movslq or add (%rax),%reg */
}

/* The jump behind a call that must not fail is filled in when its end is known. */
static void put_call(struct remote_batch *b, const struct batch_call *c, unsigned n)
{
	MUST(c->args <= 6 && c->nr >= 0);
	for (int i = 0; i < c->args; i++) {
		MUST(c->of[i] < OF_RESULT || c->of[i] - OF_RESULT < (int)n);	/* of one before */
		put_argument(b, c, i);
	}
	put_value(b, "\xb8", 1, (uint64_t)c->nr, 4);		/* mov $nr,%eax */
	put(b, "\x0f\x05", 2);					/* syscall */
	put_value(b, "\x48\xa3", 2, results_at(b->r) + n * sizeof(uint64_t), 8);
	if (!c->must)
		return;
	put_value(b, "\x48\x3d", 2, FAILS & 0xffffffff, 4);	/* cmp $FAILS,%rax */
	put_value(b, "\x0f\x83", 2, 0, 4);			/* jae */
	MUST(b->opens < BATCH_MAX);
	b->open[b->opens++] = (uint16_t)b->len;
}

static void jumps_close(struct remote_batch *b)
{
	for (; b->opens; b->opens--) {
		uint16_t from = b->open[b->opens - 1];
		int32_t by = (int32_t)b->len - from;

		if (!b->full)
			memcpy(b->code + from - sizeof(by), &by, sizeof(by));
	}
}

static void emit(struct remote_batch *b, const struct batch_call *call, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		if (call[i].nr == BATCH_STOP || call[i].nr == BATCH_FINALLY)
			jumps_close(b);
		if (call[i].nr == BATCH_STOP)
			put(b, "\xcc", 1);
		else if (call[i].nr != BATCH_FINALLY)
			put_call(b, &call[i], i);
	}
	jumps_close(b);
	put(b, "\xcc", 1);
}

static uint64_t code_at(const struct remote *r)
{
	return r->regs.rip & ~(PAGE - 1);
}

/* --- by the remote's own way: each call alone ------------------------------------------ */

/* What an argument is; false: what it is made of cannot be read. */
static bool argument_find(const struct remote_batch *b, const struct batch_call *c, int i,
			  uint64_t *value)
{
	int32_t word = 0;

	*value = c->arg[i];
	if (c->of[i] == OF_VALUE)
		return true;
	if (c->of[i] == OF_WORD) {
		if (memory_read(b->r->memory, c->arg[i], &word, sizeof(word)))
			return false;
		*value = (uint64_t)(int64_t)word;
		return true;
	}
	if (memory_read(b->r->memory, results_at(b->r) + (c->of[i] - OF_RESULT) * sizeof(*value),
			value, sizeof(*value)))
		return false;
	*value += c->arg[i];
	return true;
}

/* False: it failed and must not have. */
static bool call_make(struct remote_batch *b, unsigned n)
{
	const struct batch_call *c = &b->call[n];
	uint64_t arg[6] = { 0 };
	long result;

	for (int i = 0; i < c->args; i++)
		if (!argument_find(b, c, i, &arg[i]))
			return false;
	result = remote_call(b->r, c->nr, arg);
	return !memory_write(b->r->memory, results_at(b->r) + n * sizeof(result), &result,
			     sizeof(result)) && !(c->must && (uint64_t)result >= FAILS);
}

/* Up to the next stop. */
static int calls_make(struct remote_batch *b)
{
	bool fails = false;

	MUST(b->next <= b->calls && b->calls <= BATCH_MAX);
	for (; b->next < b->calls && b->call[b->next].nr != BATCH_STOP; b->next++) {
		if (b->call[b->next].nr == BATCH_FINALLY)
			fails = false;
		else if (!fails)
			fails = !call_make(b, b->next);
	}
	b->next += b->next < b->calls;
	return 0;
}

int remote_batch_begin(struct remote_batch *b, struct remote *r, const struct batch_call *call,
		       unsigned n)
{
	uint64_t none[BATCH_MAX];
	int result;

	b->r = r;
	b->len = b->opens = 0;
	b->full = false;
	MUST(n <= BATCH_MAX);
	emit(b, call, n);
	MUST(!b->opens);
	if (b->full)
		return -E2BIG;
	memset(none, 0xff, sizeof(none));	/* what is not reached has no result */
	result = memory_write(r->memory, results_at(r), none, n * sizeof(*none));
	b->call = call;
	b->calls = n;
	b->next = 0;
	if (r->way)
		return result ? result : calls_make(b);
	if (!result)
		result = memory_read(r->memory, code_at(r), b->saved, b->len);
	if (!result)
		result = memory_write(r->memory, code_at(r), b->code, b->len);
	if (result)
		return result;
	result = remote_run(r, code_at(r));
	if (result)
		remote_batch_end(b);
	return result;
}

int remote_batch_next(struct remote_batch *b)
{
	return b->r->way ? calls_make(b) : remote_run(b->r, 0);
}

int remote_batch_results(const struct remote_batch *b, long *result, unsigned n)
{
	MUST(n <= BATCH_MAX);
	return memory_read(b->r->memory, results_at(b->r), result, n * sizeof(*result));
}

void remote_batch_end(struct remote_batch *b)
{
	static const uint8_t zero[BATCH_DATA + BATCH_MAX * sizeof(uint64_t)];

	if (!b->r->way)
		memory_write(b->r->memory, code_at(b->r), b->saved, b->len);
	/* A fresh stack is empty, and a twin's the same. */
	memory_write(b->r->memory, batch_data(b->r), zero, sizeof(zero));
}
