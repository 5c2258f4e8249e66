/*
 * The core's two walks: what record_call() writes of a leader's call must answer
 * the follower's same call, and tell where another one differs.
 *
 * This file is the core's host: memory is our own, and neither side ever waits.
 * A buffer of the leader's and one of the follower's stand for the two programs.
 */
#include <sys/epoll.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "engine/abi/area.h"
#include "engine/abi/brief.h"
#include "engine/core/walk.h"

#define CHUNKS	8
#define BAD	16ul	/* an address that nobody has */

static struct streams leader, follower;
static struct writer out;
static struct reader in;
static struct path_map maps[1];
static uint32_t maps_used;

/* What a string may reach to is read of it, whatever lies there: as from a program. */
__attribute__((no_sanitize("address")))
long target_in(void *to, uint64_t from, size_t len)
{
	if (len && from < 4096)
		return -EFAULT;
	for (size_t i = 0; i < len; i++)
		((volatile uint8_t *)to)[i] = ((const uint8_t *)from)[i];
	return 0;
}

long target_out(uint64_t to, const void *from, size_t len)
{
	if (len && to < 4096)
		return -EFAULT;
	memcpy((void *)to, from, len);
	return 0;
}

struct event *host_begin(struct writer *w, uint8_t kind, uint16_t call)
{
	struct event *e = writer_begin(w, kind, call);

	cr_assert_not_null(e, "the ring is full");
	return e;
}

bool host_more(struct reader *r)
{
	(void)r;
	return false;
}

const struct path_map *host_path_maps(uint32_t *n)
{
	*n = maps_used;
	return maps;
}

static void set_up(void)
{
	struct conduct *c = mmap(NULL, streams_size(CHUNKS), PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int lane;

	cr_assert_neq(c, MAP_FAILED);
	c->chunks = CHUNKS;
	c->sections = VERSIONS;
	c->following = 1 << 1;
	leader = (struct streams){ c, 0 };
	follower = (struct streams){ c, 1 };
	lane = lane_open(&leader, ~0u);
	cr_assert_eq(lane, 0);
	writer_attach(&out, &leader, 0);
	cursor_begin(&follower, 0, streams_section(&leader, 0)->lane[0].life, 0);
	reader_attach(&in, &follower, 0);
	maps_used = 0;
}

TestSuite(match, .init = set_up);

/* The leader makes the call, and has this result. */
static void led(long nr, int64_t result, uint64_t room, const uint64_t args[CALL_ARGS])
{
	struct walk w = { call_find_variant(nr, args), args, result, room, NULL };
	struct event *e = host_begin(&out, EVENT_CALL, (uint16_t)nr);

	e->result = result;
	record_call(&out, &w);
	writer_commit(&out);
}

/* The follower makes it; whether it is the same. */
static bool same(long nr, uint64_t room, const uint64_t args[CALL_ARGS], struct mismatch *m)
{
	const struct event *e = reader_peek(&in);
	struct walk w = { call_find_variant(nr, args), args, 0, room, NULL };
	bool ok;

	cr_assert_not_null(e);
	cr_assert_eq(e->call, nr);
	w.result = e->result;
	ok = match_values(&w, e, m) && match_memory(&in, &w, true, m);
	reader_take(&in);
	return ok;
}

#define ARGS(...) ((const uint64_t[CALL_ARGS]){ __VA_ARGS__ })
#define AT(x) ((uint64_t)(x))

Test(match, write_same_content)
{
	struct mismatch m;

	led(CALL_write, 5, 0, ARGS(3, AT("hello"), 5));
	cr_expect(same(CALL_write, 0, ARGS(3, AT("hello"), 5), &m));
}

Test(match, write_first_differing_byte)
{
	char theirs[70000], mine[70000];
	struct mismatch m;

	/* Over several cells, chunks and events; where pieces meet, too. */
	memset(theirs, 'a', sizeof(theirs));
	for (size_t at = 0; at < sizeof(theirs); at += 611) {
		memcpy(mine, theirs, sizeof(mine));
		mine[at] = 'b';
		led(CALL_write, sizeof(theirs), 0, ARGS(3, AT(theirs), sizeof(theirs)));
		cr_expect_not(same(CALL_write, 0, ARGS(3, AT(mine), sizeof(mine)), &m));
		cr_expect_eq(m.what, DIFFERS_BYTES);
		cr_expect_eq(m.arg, 1);
		cr_expect_eq(m.offset, at);
	}
}

Test(match, write_values)
{
	struct mismatch m;

	led(CALL_write, 5, 0, ARGS(3, AT("hello"), 5));
	cr_expect_not(same(CALL_write, 0, ARGS(4, AT("hello"), 5), &m));
	cr_expect_eq(m.what, DIFFERS_VALUE);
	cr_expect_eq(m.arg, 0);
	led(CALL_write, 5, 0, ARGS(3, AT("hello"), 5));
	cr_expect_not(same(CALL_write, 0, ARGS(3, AT("hello!"), 6), &m));
	cr_expect_eq(m.arg, 2);
}

Test(match, write_cut_short_compares_what_went)
{
	struct mismatch m;

	led(CALL_write, 3, 0, ARGS(3, AT("helXX"), 5));
	cr_expect(same(CALL_write, 0, ARGS(3, AT("helYY"), 5), &m));
	led(CALL_write, -EAGAIN, 0, ARGS(3, AT("XXXXX"), 5));
	cr_expect(same(CALL_write, 0, ARGS(3, AT("YYYYY"), 5), &m));
}

Test(match, read_is_answered)
{
	char theirs[] = "request", mine[16] = "";
	struct mismatch m;

	led(CALL_read, 7, 0, ARGS(3, AT(theirs), 16));
	cr_expect(same(CALL_read, 0, ARGS(3, AT(mine), 16), &m));
	cr_expect_str_eq(mine, "request");
}

Test(match, read_never_writes_beyond_the_room)
{
	char theirs[64], mine[64];
	struct iovec a = { theirs, 64 }, b = { mine, 10 };
	struct mismatch m;

	memset(theirs, 'x', 64);
	memset(mine, '.', 64);
	led(CALL_readv, 64, 0, ARGS(3, AT(&a), 1));
	cr_expect(same(CALL_readv, 0, ARGS(3, AT(&b), 1), &m));
	cr_expect_eq(memcmp(mine, "xxxxxxxxxx......", 16), 0);
}

Test(match, vectors_cut_elsewhere)
{
	struct iovec a[2] = { { "hel", 3 }, { "lo world", 8 } };
	struct iovec b[3] = { { "hello", 5 }, { "", 0 }, { " world", 6 } };
	struct mismatch m;

	led(CALL_writev, 11, 0, ARGS(3, AT(a), 2));
	cr_expect_not(same(CALL_writev, 0, ARGS(3, AT(b), 3), &m), "the count is a value");
	cr_expect_eq(m.what, DIFFERS_VALUE);
	b[0].iov_len = 11;
	b[0].iov_base = "hello_world";
	led(CALL_writev, 11, 0, ARGS(3, AT(a), 2));
	cr_expect_not(same(CALL_writev, 0, ARGS(3, AT(b), 2), &m));
	cr_expect_eq(m.what, DIFFERS_BYTES);
	cr_expect_eq(m.offset, 5);
}

Test(match, paths)
{
	struct mismatch m;

	led(CALL_open, 3, 0, ARGS(AT("/usr/share/a"), O_RDONLY, 0777));
	cr_expect(same(CALL_open, 0, ARGS(AT("/usr/share/a"), O_RDONLY, 0123), &m),
		  "a mode that creates nothing means nothing");
	led(CALL_open, 3, 0, ARGS(AT("/usr/share/a"), O_CREAT, 0777));
	cr_expect_not(same(CALL_open, 0, ARGS(AT("/usr/share/a"), O_CREAT, 0123), &m));
	led(CALL_open, 3, 0, ARGS(AT("/usr/share/a"), O_RDONLY, 0));
	cr_expect_not(same(CALL_open, 0, ARGS(AT("/usr/share/ab"), O_RDONLY, 0), &m));
	cr_expect_eq(m.offset, 12);
}

Test(match, paths_under_a_map)
{
	struct mismatch m;

	maps_used = 1;
	strcpy(maps[0].from, "/usr");
	strcpy(maps[0].to, "/opt/new");
	led(CALL_unlink, 0, 0, ARGS(AT("/usr/lib/x")));
	cr_expect(same(CALL_unlink, 0, ARGS(AT("/opt/new/lib/x")), &m));
	led(CALL_unlink, 0, 0, ARGS(AT("/usr/lib/x")));
	cr_expect(same(CALL_unlink, 0, ARGS(AT("/usr/lib/x")), &m));
	led(CALL_unlink, 0, 0, ARGS(AT("/usrlib/x")));
	cr_expect_not(same(CALL_unlink, 0, ARGS(AT("/opt/newlib/x")), &m), "whole names only");
}

Test(match, words_under_a_map)
{
	char *theirs[] = { "/usr/bin/x", "-c", "/usr/etc/c", "--log=/usr/log", "usr", NULL };
	char *mine[] = { "/opt/new/bin/x", "-c", "/opt/new/etc/c", "--log=/opt/new/log", "usr", NULL };
	struct mismatch m;

	maps_used = 1;
	strcpy(maps[0].from, "/usr");
	strcpy(maps[0].to, "/opt/new");
	led(CALL_execve, 0, 0, ARGS(AT("/usr/bin/x"), AT(theirs), 0));
	cr_expect(same(CALL_execve, 0, ARGS(AT("/opt/new/bin/x"), AT(mine), 0), &m));
	mine[3] = "--lag=/opt/new/log";
	led(CALL_execve, 0, 0, ARGS(AT("/usr/bin/x"), AT(theirs), 0));
	cr_expect_not(same(CALL_execve, 0, ARGS(AT("/opt/new/bin/x"), AT(mine), 0), &m));
	mine[3] = "--log=/opt/new/log";
	mine[4] = "usr2";
	led(CALL_execve, 0, 0, ARGS(AT("/usr/bin/x"), AT(theirs), 0));
	cr_expect_not(same(CALL_execve, 0, ARGS(AT("/opt/new/bin/x"), AT(mine), 0), &m));
	cr_expect_eq(m.offset, 3);
}

/* Where there is no mask its length is whatever the register held. */
Test(match, masks_that_are_not_there)
{
	struct epoll_event got[2] = { { 0 } }, events[2] = { { .events = EPOLLIN } };
	uint64_t mask = 5;
	struct mismatch m;

	led(CALL_epoll_pwait, 1, 0, ARGS(3, AT(events), 2, 100, 0, 8));
	cr_expect(same(CALL_epoll_pwait, 0, ARGS(3, AT(got), 2, 100, 0, 0x12345), &m));
	cr_expect_eq(got[0].events, EPOLLIN);
	led(CALL_epoll_pwait, -EINVAL, 0, ARGS(3, AT(events), 2, 100, AT(&mask), 7));
	cr_expect_not(same(CALL_epoll_pwait, 0, ARGS(3, AT(got), 2, 100, AT(&mask), 8), &m));
}

/* What is sent is what stood there before the answer came. */
Test(match, answered_where_it_sends_from)
{
	uint64_t theirs[16] = { 5, 5 }, args[CALL_ARGS];
	const uint64_t *told = ARGS(2, AT(theirs), AT(theirs), 8);
	struct walk w = { call_find(CALL_mq_getsetattr), args, 0, 0, NULL };
	struct sent sent;

	memcpy(args, told, sizeof(args));
	cr_expect(step_may_alias(w.desc));
	cr_expect_not(step_may_alias(call_find(CALL_read)));
	cr_expect(step_aliases(&w));
	args[2] = AT(theirs) + 64;	/* beside it */
	cr_expect_not(step_aliases(&w));
	args[1] = AT("a text");
	args[2] = 0;
	cr_expect_not(step_aliases(&w));
	w.desc = call_find(CALL_readlink);
	memcpy(args, ARGS(AT(theirs), AT(theirs), 8), sizeof(args));
	cr_expect(step_aliases(&w));
	step_keep(&w, &sent);
	theirs[0] = 7;
	cr_expect_eq(*(const uint64_t *)w.args[0], 5);
	cr_expect_eq(w.args[1], AT(theirs));
}

Test(match, addresses_by_what_means_something)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = 7, .sin_addr = { 1 } }, b = a;
	struct mismatch m;

	memset(b.sin_zero, 9, sizeof(b.sin_zero));
	led(CALL_connect, 0, 0, ARGS(3, AT(&a), sizeof(a)));
	cr_expect(same(CALL_connect, 0, ARGS(3, AT(&b), sizeof(b)), &m));
	b.sin_port = 8;
	led(CALL_connect, 0, 0, ARGS(3, AT(&a), sizeof(a)));
	cr_expect_not(same(CALL_connect, 0, ARGS(3, AT(&b), sizeof(b)), &m));
	cr_expect_eq(m.offset, 2);
}

Test(match, accept_gives_the_peer)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = 7 }, b = { 0 };
	socklen_t alen = sizeof(a), blen = sizeof(b);
	struct mismatch m;

	led(CALL_accept, 9, sizeof(a), ARGS(3, AT(&a), AT(&alen)));
	cr_expect(same(CALL_accept, sizeof(b), ARGS(3, AT(&b), AT(&blen)), &m));
	cr_expect_eq(b.sin_port, 7);
	cr_expect_eq(blen, sizeof(a));
	led(CALL_accept, 9, 0, ARGS(3, 0, 0));
	cr_expect(same(CALL_accept, 0, ARGS(3, 0, 0), &m));
}

Test(match, messages)
{
	char theirs[8] = "abcdefg", mine[8] = "";
	struct iovec a = { theirs, 7 }, b[2] = { { mine, 3 }, { mine + 3, 4 } };
	struct msghdr from = { .msg_iov = &a, .msg_iovlen = 1 };
	struct msghdr to = { .msg_iov = b, .msg_iovlen = 2 };
	struct mismatch m;

	led(CALL_recvmsg, 7, 0, ARGS(3, AT(&from), 0));
	cr_expect(same(CALL_recvmsg, 0, ARGS(3, AT(&to), 0), &m));
	cr_expect_str_eq(mine, "abcdefg");
	led(CALL_sendmsg, 7, 0, ARGS(3, AT(&from), 0));
	cr_expect(same(CALL_sendmsg, 0, ARGS(3, AT(&to), 0), &m));
	mine[6] = 'X';
	led(CALL_sendmsg, 7, 0, ARGS(3, AT(&from), 0));
	cr_expect_not(same(CALL_sendmsg, 0, ARGS(3, AT(&to), 0), &m));
	cr_expect_eq(m.offset, 6);
}

Test(match, bad_memory_is_a_result)
{
	char mine[8];
	struct mismatch m;

	led(CALL_write, 5, 0, ARGS(3, BAD, 5));		/* gone since the call */
	memset(mine, 0, sizeof(mine));
	cr_expect(same(CALL_write, 0, ARGS(3, AT(mine), 5), &m));
	led(CALL_write, 5, 0, ARGS(3, AT("hello"), 5));
	cr_expect_not(same(CALL_write, 0, ARGS(3, BAD, 5), &m));
	led(CALL_read, 5, 0, ARGS(3, AT("hello"), 5));
	cr_expect(same(CALL_read, 0, ARGS(3, BAD, 5), &m), "its own fault, as natively");
}

/* Every row of the table goes there and back, whatever its kinds are. */
Test(match, every_row)
{
	static uint64_t memory[1024];
	int rows = 0;

	for (long nr = 0; nr < CALL_MAX; nr++) {
		const struct call_desc *d = call_find(nr);
		uint64_t args[CALL_ARGS];
		struct mismatch m = { 0 };

		if (!d || call_has_variants(nr))
			continue;
		for (int i = 0; i < CALL_ARGS; i++)
			args[i] = d->args[i].kind >= KIND_VALUES ? AT(memory) : 1;
		led(nr, 0, 16, args);
		cr_expect(same(nr, 16, args, &m), "%s: argument %u", d->name, m.arg);
		rows++;
	}
	cr_expect_gt(rows, 350);
}

/* --- recipes ---------------------------------------------------------------------- */

/* One event of the call, at a chunk's beginning; a copy of it, of `room` bytes at most. */
static size_t recorded(const struct walk *w, uint8_t *cells, size_t room)
{
	struct event *e = host_begin(&out, EVENT_CALL, 0);
	size_t size;

	out.at += writer_room(&out);
	writer_commit(&out);
	e = host_begin(&out, EVENT_CALL, (uint16_t)w->desc->nr);
	memset(e->arg, 0, sizeof(e->arg));
	e->seq = 0;
	e->result = w->result;
	record_call(&out, w);
	writer_commit(&out);
	/* What does not fit goes on behind it, on both ways from the same place. */
	size = sizeof(*e) + e->size;
	cr_assert_leq(size, room);
	memcpy(cells, e, size);
	while (reader_peek(&in))
		reader_take(&in);
	return size;
}

/* With its recipe a row is recorded as step by step. */
static void same_recorded(const struct call_desc *d, int64_t result, const uint64_t *args)
{
	static uint8_t steps[CHUNK_SIZE], recipes[CHUNK_SIZE];
	struct recipe recipe = step_recipe(d);
	struct walk w = { d, args, result, 40, NULL };
	size_t size = recorded(&w, steps, sizeof(steps));

	w.recipe = &recipe;
	cr_assert_eq(recorded(&w, recipes, sizeof(recipes)), size, "%s: %ld", d->name, result);
	cr_assert_arr_eq(recipes, steps, size, "%s: %ld", d->name, result);
}

Test(match, recipes_record_what_steps_do)
{
	static const int64_t results[] = { -EFAULT, -EINTR, 0, 1, 7, 300 };
	/* Zeros and small numbers only: it is an array of anything. */
	static uint64_t memory[1 << 16];
	int rows = 0;

	for (size_t i = 0; i < sizeof(memory) / 8; i += 64)
		memory[i] = i / 64 % 3;
	for (long nr = 0; nr < CALL_MAX; nr++) {
		const struct call_desc *d = call_find(nr);

		if (!d || call_has_variants(nr))
			continue;
		rows++;
		for (int n = 0; n < 100; n++) {
			uint64_t args[CALL_ARGS];

			for (unsigned i = 0; i < CALL_ARGS; i++)
				args[i] = d->args[i].kind < KIND_VALUES ?
					  (uint64_t)rand() % 300 :
					  rand() % 8 ? AT(memory) + (uint64_t)(rand() % 64) * 8 : 0;
			same_recorded(d, results[rand() % 6], args);
		}
	}
	cr_assert_gt(rows, 200);
}
