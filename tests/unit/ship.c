/*
 * A recording that is shipped: put together again from slices that come twice, otherwise cut and
 * out of order; and whatever is made of a message, nothing is taken that does not go on where the
 * last one ended.  RUNS: of the last test.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/outside/bytes/crc32c.h"
#include "engine/outside/ship/address.h"
#include "engine/outside/ship/intake.h"
#include "engine/outside/ship/message.h"
#include "engine/outside/ship/spool.h"

#define RUNS_USUAL	20000
#define SEGMENTS	3
#define SEGMENT_MOST	3000
#define SLICE_MOST	400

static char folder[64];
static int folder_fd;
static uint8_t segment[SEGMENTS][SEGMENT_MOST];
static uint32_t length[SEGMENTS];
static struct log_tail tail;
static struct intake in;
static union {
	struct ship_message m;
	uint8_t bytes[sizeof(struct ship_message) + SEGMENT_MOST];
} now;
static uint32_t dice_word;

static uint32_t dice(uint32_t n)
{
	dice_word = dice_word * 1664525 + 1013904223;
	return (dice_word >> 8) % n;
}

static void begin(void)
{
	const char *seed = getenv("SEED");

	dice_word = seed ? (uint32_t)atol(seed) : (uint32_t)getpid();
	fprintf(stderr, "ship: SEED=%u\n", dice_word);
	strcpy(folder, "/dev/shm/mve-ship-XXXXXX");
	cr_assert(mkdtemp(folder));
	folder_fd = open(folder, O_RDONLY | O_DIRECTORY);
	for (uint32_t i = 0; i < SEGMENTS; i++) {
		length[i] = sizeof(struct log_segment) + dice(SEGMENT_MOST - 64);
		for (uint32_t n = 0; n < length[i]; n++)
			segment[i][n] = (uint8_t)dice(256);
	}
	tail = (struct log_tail){ 0 };
	intake_begin(&in, folder_fd, &tail);
}

static void end(void)
{
	intake_end(&in);
	spool_remove(folder_fd);
	cr_assert(access(folder, F_OK));
	close(folder_fd);
}

TestSuite(ship, .init = begin, .fini = end);

/* So many bytes of a segment, from there on; where there are none, the end. */
static size_t slice(uint32_t number, uint32_t from, uint32_t n, uint32_t flags)
{
	uint64_t before = 0;

	for (uint32_t i = 0; i < number; i++)
		before += length[i];
	now.m = (struct ship_message){ .recording = { 1, 2 }, .bytes = before + from, .size = n,
				       .place = tail_place(number, from), .flags = flags };
	memcpy(now.bytes + sizeof(now.m), segment[number] + from, n);
	message_seal(&now.m);
	return sizeof(now.m) + n;
}

static uint32_t slice_size(uint32_t number, uint32_t from)
{
	uint32_t n = (from ? 1 : sizeof(struct log_segment)) + dice(SLICE_MOST);

	return n < length[number] - from ? n : length[number] - from;
}

static void whole_expect(void)
{
	uint8_t bytes[SEGMENT_MOST + 1];
	char name[96];

	for (uint32_t i = 0; i < SEGMENTS; i++) {
		int fd;

		snprintf(name, sizeof(name), "%s/" LOG_NAME, folder, i);
		fd = open(name, O_RDONLY);
		cr_assert(read(fd, bytes, sizeof(bytes)) == (ssize_t)length[i]);
		cr_assert(!memcmp(bytes, segment[i], length[i]));
		close(fd);
	}
	cr_expect(tail.settled == tail_place(SEGMENTS - 1, length[SEGMENTS - 1]));
}

Test(ship, in_order)
{
	uint32_t n;

	for (uint32_t i = 0; i < SEGMENTS; i++)
		for (uint32_t at = 0; at < length[i]; at += n) {
			n = slice_size(i, at);
			cr_assert(intake_take(&in, &now, slice(i, at, n, 0)) == INTAKE_TAKEN);
			cr_assert(tail.settled == tail_place(i, at + n));
		}
	n = (uint32_t)slice(SEGMENTS - 1, length[SEGMENTS - 1], 0, SHIP_OVER);
	cr_expect(intake_take(&in, &now, n) == INTAKE_OVER);
	whole_expect();
}

/* The sender begins anew somewhere before, with other cuts; some are lost on the way. */
Test(ship, again)
{
	uint32_t i = 0, at = 0, n;

	while (tail.settled != tail_place(SEGMENTS - 1, length[SEGMENTS - 1])) {
		n = slice_size(i, at);
		if (dice(5))
			cr_assert(intake_take(&in, &now, slice(i, at, n, 0)) <= INTAKE_AHEAD);
		else if (!in.begun)
			continue;	/* the first is acknowledged before there is another */
		at += n;
		if (at == length[i] && i + 1 < SEGMENTS) {
			at = 0;
			i++;
		}
		if (!dice(10) || at == length[i]) {
			i = tail_segment(tail.settled);
			at = dice(tail_offset(tail.settled) + 1);
			at = at < sizeof(struct log_segment) ? 0 : at;
		}
		if (at == length[i] && i + 1 < SEGMENTS) {
			at = 0;
			i++;
		}
	}
	whole_expect();
}

Test(ship, others)
{
	size_t n = slice(0, 0, 100, 0);

	cr_assert(intake_take(&in, &now, n) == INTAKE_TAKEN);
	n = slice(0, 100, 50, 0);
	now.m.recording[1]++;
	message_seal(&now.m);
	cr_expect(intake_take(&in, &now, n) == INTAKE_WRONG && strstr(in.why, "another recording"));
	n = slice(0, 100, 50, 0);
	now.m.ring_version++;
	cr_expect(intake_take(&in, &now, n) == INTAKE_WRONG && strstr(in.why, "another version"));
	n = slice(0, 100, 50, 0);
	cr_expect(intake_take(&in, &now, n - 1) == INTAKE_WRONG && strstr(in.why, "torn"));
	now.bytes[n - 1] ^= 1;
	cr_expect(intake_take(&in, &now, n) == INTAKE_WRONG && strstr(in.why, "damaged"));
	cr_expect(tail.settled == tail_place(0, 100));
}

/* Whatever a message says, with its checksum right: what is settled is what was written. */
Test(ship, made, .timeout = 3600)
{
	static const uint64_t odd[] = { 0, 1, 64, 1ull << 32, UINT32_MAX, UINT64_MAX, 1ull << 63 };
	const char *runs = getenv("RUNS");
	long left = runs ? atol(runs) : RUNS_USUAL;
	struct stat is;
	char name[32];

	for (; left--;) {
		uint32_t i = dice(SEGMENTS), at = dice(length[i]);
		size_t n = slice(i, dice(3) ? at : 0, dice(length[i] - at + 1), dice(9) == 8);
		uint64_t *word = (uint64_t *)&now.m + dice(sizeof(now.m) / 8);

		if (dice(2))
			*word = dice(2) ? odd[dice(7)] : *word + odd[dice(7)];
		now.m.size = dice(4) ? (uint32_t)(n - sizeof(now.m)) : now.m.size;
		if (now.m.size <= SEGMENT_MOST && dice(3))
			message_seal(&now.m);
		intake_take(&in, &now, n);
		if (!in.bytes)
			continue;
		snprintf(name, sizeof(name), LOG_NAME, tail_segment(tail.settled));
		cr_assert(!fstatat(folder_fd, name, &is, AT_SYMLINK_NOFOLLOW));
		cr_assert((uint64_t)is.st_size == tail_offset(tail.settled));
		if (dice(50))
			continue;
		intake_end(&in);
		spool_drop(folder_fd, &(uint32_t){ 0 }, tail_segment(tail.settled) % 64 + 1);
		spool_remove(folder_fd);
		cr_assert(!mkdir(folder, 0700));
		close(folder_fd);
		folder_fd = open(folder, O_RDONLY | O_DIRECTORY);
		intake_begin(&in, folder_fd, &tail);
	}
}

/* --- addresses ----------------------------------------------------------------------- */

Test(address, taken)
{
	struct ship_address a;

	cr_assert(!address_parse(&a, "nats://one:4222/shop.eu"));
	cr_expect(a.servers == 1 && !strcmp(a.server[0], "nats://one:4222"));
	cr_expect(!strcmp(a.subject, "shop.eu"));
	cr_assert(!address_parse(&a, "tls://me:secret@one,nats://two:1/x"));
	cr_expect(a.servers == 2 && !strcmp(a.server[0], "tls://me:secret@one"));
	cr_expect(!strcmp(a.server[1], "nats://two:1"));
	cr_assert(!address_parse(&a, "nats://[::1]:4222,me:secret@[::1]/x"));
	cr_assert(!address_parse(&a, "nats:///x"));
	cr_expect(!a.servers);
}

Test(address, refused)
{
	static const char *const wrong[] = {
		"", "x", "nats://", "nats://one", "http://one/x", "nats://one/", "nats://one/a..b",
		"nats://one/.a", "nats://one/a.", "nats://one/a.*", "nats://one/>",
		"nats://one/$JS.x", "nats://one/a b", "nats://,/x", "nats://a,b,c,d,e,f,g,h,i/x",
		"nats://one:/x", "nats://one:0/x", "nats://one:65536/x", "nats://one:4x/x",
		"nats://one,me:4222@two:+1/x",
	};
	struct ship_address a;
	char longest[4096];

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		cr_expect(address_parse(&a, wrong[i]), "%s", wrong[i]);
	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = 0;
	memcpy(longest, "nats://", 7);
	cr_expect(address_parse(&a, longest));
	memcpy(longest + sizeof(longest) - 3, "/x", 3);
	cr_expect(address_parse(&a, longest));
}
