/*
 * What the recorder of a row writes is what record_call() writes: of every row of the table,
 * with arguments and results of many kinds, of memory that can be read or not.
 */
#include "engine/abi/rows.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "engine/core/record_row.h"

#define CHUNKS	64
#define ROUNDS	150
#define BYTES	32768	/* of the program's memory */

/* It ends as pages do: a text is looked at in pieces that do not go beyond one. */
static uint64_t memory[BYTES / 8] __attribute__((aligned(4096)));
static struct streams streams[2];

/* Nothing is readable but `memory`. */
long target_in(void *to, uint64_t from, size_t len)
{
	uint64_t at = (uint64_t)memory;

	if (len && (from < at || len > BYTES || from - at > BYTES - len))
		return -EFAULT;
	if (len)
		memcpy(to, (const void *)from, len);
	return 0;
}

long target_text(void *to, uint64_t from, size_t room)
{
	char *out = to;

	for (size_t n = 0; n + 8 <= room; n++)
		if (target_in(out + n, from + n, 1))
			return -EFAULT;
		else if (!out[n])
			return (long)n;
	return -E2BIG;
}

long target_out(uint64_t to, const void *from, size_t len)
{
	(void)to, (void)from, (void)len;
	return -EFAULT;
}

struct event *host_begin(struct writer *w, uint8_t kind, uint16_t call)
{
	struct event *e = writer_begin(w, kind, call);

	cr_assert_not_null(e, "the ring is full: %s", call_find(call)->name);
	return e;
}

bool host_more(struct reader *r)
{
	(void)r;
	return false;
}

const struct path_map *host_path_maps(uint32_t *n)
{
	*n = 0;
	return NULL;
}

static void set_up(void)
{
	for (int i = 0; i < 2; i++) {
		struct conduct *c = mmap(NULL, streams_size(CHUNKS), PROT_READ | PROT_WRITE,
					 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		cr_assert_neq(c, MAP_FAILED);
		streams[i] = (struct streams){ c, 0 };
		c->chunks = CHUNKS;
		c->sections = VERSIONS;
		c->following = 1 << 1;
	}
	srand(14);
}

TestSuite(record_row, .init = set_up);

static uint64_t chance(uint64_t n)
{
	return (uint64_t)rand() % n;
}

/* No call that says more was ever made: the ring would be full.  Sizes have no sign. */
static uint64_t number(enum arg_kind kind)
{
	static const int64_t values[] = { 0, 1, 2, 8, 15, 16, 64, 127, 0100, -1, -100, INT32_MIN };

	if (kind == KIND_SIZE || chance(2))
		return chance(600);
	return (uint64_t)values[chance(sizeof(values) / sizeof(values[0]))];
}

/* In memory, at its end, or of nothing. */
static uint64_t address(void)
{
	switch (chance(8)) {
	case 0:
		return chance(100);
	case 1:
		return (uint64_t)memory + BYTES - 8 * chance(4);
	default:
		return (uint64_t)memory + 8 * chance(BYTES / 8);
	}
}

static int64_t result_of(const struct call_desc *d)
{
	static const int64_t failed[] = { -EAGAIN, -EINVAL, -ERANGE, -EINTR, -E2BIG, -EOVERFLOW };

	if (!chance(4))
		return failed[chance(sizeof(failed) / sizeof(failed[0]))];
	return (int64_t)chance(d->result == KIND_SIZE && chance(2) ? 20000 : 6);
}

/* Addresses are lengths, too, where they stand as one: of messages the ring has room for few. */
static void memory_fill(bool addresses)
{
	for (size_t i = 0; i < BYTES / 8; i++)
		memory[i] = chance(3) || !addresses ? chance(600) : address();
}

static bool counts_messages(const struct call_desc *d)
{
	return d->nargs > 1 && d->args[1].what == LAYOUT_mmsghdr;
}

/* A reader stands at its beginning: nothing of it is given back. */
static void lane_begin(struct writer *w, struct streams *s)
{
	struct streams reads = { s->conduct, 1 };

	memset(streams_section(s, 0), 0, sizeof(struct section));
	cr_assert_eq(lane_open(s, ~0u), 0);
	cursor_begin(&reads, 0, streams_section(s, 0)->lane[0].life, 0);
	writer_attach(w, s, 0);
}

typedef void recorder(struct writer *w, const struct walk *call);

/* Behind an event with so much payload: where the chunk ends is another place each time. */
static uint64_t tell(struct streams *s, const struct walk *call, size_t before, recorder *record)
{
	struct writer w = { 0 };
	struct event *e;

	lane_begin(&w, s);
	host_begin(&w, EVENT_CALL, 0);
	w.at += before;
	writer_commit(&w);
	e = host_begin(&w, EVENT_CALL, (uint16_t)call->desc->nr);
	e->seq = 7;
	e->result = call->result;
	memset(e->arg, 0, sizeof(e->arg));	/* what the row has no values for */
	record(&w, call);
	writer_commit(&w);
	return w.head;
}

static void same_stream(const struct walk *call)
{
	struct streams reads[2];
	struct reader r[2];
	const struct event *e[2];
	const uint8_t *piece[2];
	size_t n[2];

	for (int i = 0; i < 2; i++) {
		reads[i] = (struct streams){ streams[i].conduct, 1 };
		reader_attach(&r[i], &reads[i], 0);
		cr_assert_not_null(reader_peek(&r[i]));
		reader_take(&r[i]);
		e[i] = reader_peek(&r[i]);
		cr_assert_not_null(e[i]);
	}
	cr_assert_eq(memcmp(e[0], e[1], sizeof(*e[0])), 0, "%s: another header", call->desc->name);
	do {
		for (int i = 0; i < 2; i++)
			n[i] = reader_piece(&r[i], 4096, &piece[i]);
		cr_assert_eq(n[0], n[1], "%s: another length", call->desc->name);
		cr_assert_eq(memcmp(piece[0], piece[1], n[0]), 0, "%s: other bytes",
			     call->desc->name);
		cr_assert_eq(reader_flags(&r[0]), reader_flags(&r[1]), "%s: other flags",
			     call->desc->name);
	} while (n[0]);
}

static void by_recipe(struct writer *w, const struct walk *call)
{
	record_call(w, call);
}

static void same(const struct call_desc *d, recorder *record)
{
	struct recipe recipe = step_recipe(d);
	uint64_t args[CALL_ARGS];
	struct walk call = { .desc = d, .args = args, .recipe = &recipe };
	size_t before;

	for (int round = 0; round < ROUNDS; round++) {
		if (!(round % 50))
			memory_fill(!counts_messages(d));
		for (int i = 0; i < CALL_ARGS; i++)
			args[i] = i < d->nargs && d->args[i].kind < KIND_VALUES ?
				  number(d->args[i].kind) : address();
		call.result = result_of(d);
		before = chance(2) ? chance(1000) : (CHUNK_CELLS - 2 - chance(8)) * CELL_SIZE;
		cr_assert_eq(tell(&streams[0], &call, before, by_recipe),
			     tell(&streams[1], &call, before, record), "%s: more or less is written",
			     d->name);
		same_stream(&call);
	}
}

#define SYSCALL(nr, name, ...) \
	static void tell_##name(struct writer *w, const struct walk *call) \
	{ \
		record_row(w, call, &row_##name); \
	}
#include "engine/abi/syscalls.def"
#undef SYSCALL

Test(record_row, writes_what_the_recipe_says)
{
#define SYSCALL(nr, name, ...) same(&row_##name, tell_##name);
#include "engine/abi/syscalls.def"
#undef SYSCALL
}
