/*
 * Reports: a window is filled as a follower fills it, its memory is an array, and
 * the JSON and the text are looked at.  The stack is this test's own.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "engine/outside/report/report.h"

#define BASE	0x10000ul
#define SPACE	4096

static uint8_t memory[SPACE];
static struct slot slot;
static struct report_want want;

static long memory_read(void *ctx, uint64_t addr, void *buf, size_t len)
{
	(void)ctx;
	if (addr < BASE || addr >= BASE + SPACE)
		return -EFAULT;
	if (len > BASE + SPACE - addr)
		len = BASE + SPACE - addr;
	memcpy(buf, memory + (addr - BASE), len);
	return (long)len;
}

static const struct print_mem mem = { memory_read, NULL };

static void begin(void)
{
	memset(&slot, 0, sizeof(slot));
	want = (struct report_want){
		.session = "kv", .leader = { "v0", "./kv-1 --port 7", 10 },
		.follower = { "f1", "./kv-2 --port 7", 20 }, .tid = 21, .slot = &slot,
		.verdict = VERDICT_DIVERGED, .policy = "stop", .mem = &mem,
	};
	slot.lane = 3;
}

static struct window_row *row(uint32_t call, uint64_t a, uint64_t b, uint64_t c)
{
	struct window_row *w = &slot.window[slot.calls++ % WINDOW];

	*w = (struct window_row){ .call = call, .args = { a, b, c } };
	return w;
}

/* The event that the row met: its values, and one section of content. */
static void met(struct window_row *w, uint32_t call, int64_t result, uint64_t a, uint64_t b,
		const void *content, uint32_t len)
{
	w->event = (struct event){ .kind = EVENT_CALL, .call = (uint16_t)call, .result = result,
				   .arg = { a, b }, .seq = slot.calls };
	if (!content)
		return;
	w->event.size = 4 + len;
	memcpy(w->payload, &len, 4);
	memcpy(w->payload + 4, content, len < 52 ? len : 52);
}

static void answered(struct window_row *w)
{
	w->end = ROW_ANSWERED;
	w->result = w->event.result;
}

/* write(5, ...) that differs from the leader's at one byte. */
static json_t *written(const char *leader, const char *own, uint64_t offset)
{
	struct window_row *w;
	uint32_t len = (uint32_t)strlen(leader);

	begin();
	strcpy((char *)memory, own);
	w = row(CALL_write, 5, BASE, len);
	met(w, CALL_write, len, 5, len, leader, len);
	want.what = DIFFERS_BYTES;
	want.where = 1ull << 56 | offset;
	return report_make(&want);
}

static const char *text_at(const json_t *j, const char *key)
{
	const char *text = json_string_value(json_object_get(j, key));

	return text ? text : "(none)";
}

static long number_at(const json_t *j, const char *key)
{
	return (long)json_integer_value(json_object_get(j, key));
}

TestSuite(report);

Test(report, bytes)
{
	json_t *r = written("$5\r\nhello\r\n", "$5\r\nhellO\r\n", 8), *a, *side;

	cr_expect_str_eq(report_summary(r), "write(5, \"$5\\r\\nhellO\\r\\n\", 11) argument buf "
			 "differs at byte 8");
	a = json_object_get(r, "argument");
	cr_expect_str_eq(text_at(a, "name"), "buf");
	cr_expect_eq(number_at(a, "index"), 1);
	cr_expect_eq(number_at(a, "offset"), 8);
	side = json_object_get(a, "leader");
	cr_expect_eq(number_at(side, "byte"), 'o');
	cr_expect_eq(number_at(side, "length"), 11);
	cr_expect_str_eq(text_at(side, "text"), "\"$5\\r\\nhello\\r\\n\"");
	side = json_object_get(a, "follower");
	cr_expect_eq(number_at(side, "byte"), 'O');
	cr_expect_str_eq(text_at(json_object_get(r, "leader"), "call"),
			 "write(5, \"$5\\r\\nhello\\r\\n\", 11) = 11");
	cr_expect_str_eq(text_at(json_object_get(r, "follower"), "call"),
			 "write(5, \"$5\\r\\nhellO\\r\\n\", 11)");
	json_decref(r);
}

Test(report, bytes_anywhere)
{
	char leader[53], own[53];

	for (size_t at = 0; at < 52; at++) {
		json_t *r, *a;

		memset(leader, 'x', 52);
		leader[52] = 0;
		strcpy(own, leader);
		own[at] = 1;
		r = written(leader, own, at);
		a = json_object_get(r, "argument");
		cr_expect_eq(number_at(a, "offset"), at);
		cr_expect_eq(number_at(json_object_get(a, "leader"), "byte"), 'x');
		cr_expect_eq(number_at(json_object_get(a, "follower"), "byte"), 1);
		cr_expect(strstr(text_at(json_object_get(a, "follower"), "text"), "\\1"));
		json_decref(r);
	}
}

/* What a window keeps is not all: the byte itself may be gone. */
Test(report, bytes_not_kept)
{
	char leader[101], own[101];
	json_t *r, *a;

	memset(leader, 'x', 100);
	leader[100] = 0;
	strcpy(own, leader);
	own[90] = 'y';
	r = written(leader, own, 90);
	a = json_object_get(r, "argument");
	cr_expect_eq(number_at(a, "offset"), 90);
	cr_expect(json_is_null(json_object_get(json_object_get(a, "leader"), "byte")));
	cr_expect_eq(number_at(json_object_get(a, "follower"), "byte"), 'y');
	json_decref(r);
}

Test(report, lengths)
{
	struct iovec v = { (void *)(BASE + 64), 4 };
	struct window_row *w;
	json_t *r;

	begin();
	memcpy(memory, &v, sizeof(v));
	memcpy(memory + 64, "said", 4);
	w = row(CALL_writev, 3, BASE, 1);
	met(w, CALL_writev, 5, 3, 1, "said\n", 5);
	want.what = DIFFERS_LENGTH;
	want.where = 1ull << 56 | 4;
	r = report_make(&want);
	cr_expect_str_eq(report_summary(r), "writev(3, [{iov_base=\"said\", iov_len=4}], 1) "
			 "argument iov has 4 bytes, the leader's 5");
	json_decref(r);
}

Test(report, values)
{
	struct window_row *w;
	json_t *r;

	begin();
	w = row(CALL_close, 7, 0, 0);
	met(w, CALL_close, 0, 5, 0, NULL, 0);
	want.what = DIFFERS_VALUE;
	r = report_make(&want);
	cr_expect_str_eq(report_summary(r), "close(7) argument fd is 7, the leader's 5");
	json_decref(r);
}

/* A count differs: then what is counted matters more. */
Test(report, values_of_lengths)
{
	struct window_row *w;
	json_t *r, *content;

	begin();
	strcpy((char *)memory, "$1\r\n8\r\n");
	w = row(CALL_write, 5, BASE, 7);
	met(w, CALL_write, 8, 5, 8, "$2\r\n16\r\n", 8);
	want.what = DIFFERS_VALUE;
	want.where = 2ull << 56;
	r = report_make(&want);
	cr_expect_str_eq(report_summary(r), "write(5, \"$1\\r\\n8\\r\\n\", 7) argument n is 7, "
			 "the leader's 8; buf differs at byte 1");
	content = json_object_get(json_object_get(r, "argument"), "content");
	cr_expect_str_eq(text_at(content, "name"), "buf");
	cr_expect_eq(number_at(json_object_get(content, "leader"), "byte"), '2');
	cr_expect_eq(number_at(json_object_get(content, "follower"), "byte"), '1');
	json_decref(r);
}

Test(report, another_call)
{
	struct window_row *w;
	json_t *r;

	begin();
	strcpy((char *)memory, "k");
	w = row(CALL_read, 5, BASE, 16);
	met(w, CALL_write, 2, 5, 2, "ok", 2);
	want.what = DIFFERS_CALL;
	r = report_make(&want);
	cr_expect_str_eq(report_summary(r), "read(5, 0x10000, 16) where the leader made "
			 "write(5, \"ok\", 2) = 2");
	cr_expect(json_is_null(json_object_get(r, "argument")));
	json_decref(r);
}

Test(report, crash)
{
	struct window_row *w;
	json_t *r;

	begin();
	w = row(CALL_close, 5, 0, 0);
	met(w, CALL_close, 0, 5, 0, NULL, 0);
	answered(w);
	want.verdict = VERDICT_CRASHED;
	want.what = 11;
	want.where = 16;
	r = report_make(&want);
	cr_expect_str_eq(report_summary(r), "SIGSEGV at address 0x10");
	cr_expect_str_eq(text_at(json_object_get(r, "signal"), "address"), "0x10");
	cr_expect(json_is_null(json_object_get(json_object_get(r, "follower"), "call")));
	json_decref(r);
}

/* More calls than the window holds: the last 16, oldest first. */
Test(report, window_order)
{
	json_t *r, *rows;
	char expect[32];

	begin();
	for (unsigned i = 0; i < 21; i++) {
		struct window_row *w = row(CALL_close, i, 0, 0);

		met(w, CALL_close, 0, i, 0, NULL, 0);
		answered(w);
	}
	want.verdict = VERDICT_LAGGING;
	want.why = "a whole ring behind";
	r = report_make(&want);
	rows = json_object_get(r, "window");
	cr_assert_eq(json_array_size(rows), WINDOW);
	for (unsigned i = 0; i < WINDOW; i++) {
		const json_t *one = json_array_get(rows, i);

		snprintf(expect, sizeof(expect), "close(%u) = 0", i + 5);
		cr_expect_str_eq(text_at(one, "leader"), expect);
		cr_expect_str_eq(text_at(one, "follower"), expect);
		cr_expect(json_is_true(json_object_get(one, "same")));
		cr_expect_eq(number_at(one, "seq"), i + 6);
	}
	cr_expect_str_eq(report_summary(r), "a whole ring behind");
	json_decref(r);
}

/* A query that only the follower made has met an event that is still to come. */
Test(report, own_calls)
{
	struct window_row *w;
	const json_t *one;
	json_t *r;

	begin();
	w = row(CALL_getpid, 0, 0, 0);
	met(w, CALL_write, 2, 5, 2, "ok", 2);
	w->end = ROW_OWN;
	w->result = 10;
	r = report_make(&want);
	one = json_array_get(json_object_get(r, "window"), 0);
	cr_expect(json_is_null(json_object_get(one, "leader")));
	cr_expect_str_eq(text_at(one, "follower"), "getpid() = 10");
	json_decref(r);
}

Test(report, shape)
{
	static const char *const keys[] = {
		"format", "time", "session", "verdict", "difference", "summary", "why", "strict",
		"policy", "leader", "follower", "argument", "signal", "window", "next", "rule",
		"suggested_rule", "suggested_why",
	};
	json_t *r = written("a", "b", 0);

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		cr_expect_not_null(json_object_get(r, keys[i]), "%s", keys[i]);
	cr_expect_str_eq(text_at(r, "verdict"), "diverged");
	cr_expect_str_eq(text_at(r, "difference"), "bytes");
	cr_expect_eq(number_at(json_object_get(r, "follower"), "thread"), 21);
	cr_expect_eq(number_at(json_object_get(r, "follower"), "lane"), 2);
	cr_expect_str_eq(text_at(json_object_get(r, "leader"), "command"), "./kv-1 --port 7");
	cr_expect_str_eq(text_at(r, "suggested_rule"),
			 "write(fd, buf, n) { $(buf) == \"a\" }\n"
			 "\t=> write(fd, buf, n) -> { $(buf) = \"b\"; }\n");
	cr_expect(json_is_null(json_object_get(r, "suggested_why")));
	json_decref(r);
}

/* The same report with its content so long that everything must be cut. */
Test(report, text_fits_the_screen)
{
	char leader[1001], own[1001], *text, *line, *next;
	json_t *r;
	size_t size;
	FILE *f;

	memset(leader, '\1', 1000);
	leader[1000] = 0;
	strcpy(own, leader);
	own[30] = 'y';
	r = written(leader, own, 30);
	f = open_memstream(&text, &size);
	report_text(f, r);
	fclose(f);
	for (line = text; *line; line = next + 1) {
		next = strchr(line, '\n');
		cr_expect_leq(next - line, 80, "%.*s", (int)(next - line), line);
	}
	cr_expect(strstr(text, "argument buf differs at byte 30 (leader 1000 bytes, "
			       "follower 1000)"));
	cr_expect(strstr(text, "0x79 'y'"));
	free(text);
	json_decref(r);
}

/* --- where they are kept ------------------------------------------------------- */

static void keep_in_folder(void)
{
	char folder[] = "/tmp/mve-report-XXXXXX";

	cr_assert_not_null(mkdtemp(folder));
	setenv("XDG_STATE_HOME", folder, 1);
}

static void folder_clear(void)
{
	char command[256];

	snprintf(command, sizeof(command), "rm -r '%s'", getenv("XDG_STATE_HOME"));
	cr_expect_eq(system(command), 0);
}

Test(report, numbers_go_up_and_old_ones_go)
{
	json_t *r = written("a", "b", 0), *again;
	char path[512], last[64];
	unsigned *numbers;
	struct stat st;

	keep_in_folder();
	for (int i = 0; i < 103; i++)
		cr_assert_eq(report_keep(r, NULL, 0, path, sizeof(path)), 0);
	snprintf(last, sizeof(last), "%s/mve/kv/report-103.json", getenv("XDG_STATE_HOME"));
	cr_expect_str_eq(path, last);
	cr_expect_eq(report_list("kv", &numbers), 100);
	cr_expect_eq(numbers[0], 4);
	cr_expect_eq(numbers[99], 103);
	again = report_load("kv", 103);
	cr_expect(json_equal(again, r));
	cr_expect_null(report_load("kv", 3));
	strcpy(strrchr(path, '.'), ".txt");
	cr_expect_eq(stat(path, &st), 0);
	*strrchr(path, '/') = 0;
	cr_expect_eq(stat(path, &st), 0);
	cr_expect_eq(st.st_mode & 0777, 0700);
	free(numbers);
	json_decref(again);
	json_decref(r);
	folder_clear();
}

Test(report, strangers_folders_are_not_used)
{
	json_t *r = written("a", "b", 0);
	char path[512], folder[256];
	unsigned *numbers;

	keep_in_folder();
	cr_expect_eq(report_list("kv", &numbers), -ENOENT);
	cr_expect_eq(report_list("../kv", &numbers), -EINVAL);
	cr_assert_eq(report_keep(r, NULL, 0, path, sizeof(path)), 0);
	snprintf(folder, sizeof(folder), "%s/mve/kv", getenv("XDG_STATE_HOME"));
	chmod(folder, 0777);
	cr_expect_eq(report_keep(r, NULL, 0, path, sizeof(path)), -EPERM);
	json_decref(r);
	folder_clear();
}

/* --- stacks ---------------------------------------------------------------------- */

static json_t *stack;

static __attribute__((noipa)) void innermost(void)
{
	struct stack_start s = { .exact = true };

	__asm__ volatile("lea (%%rip), %0" : "=r"(s.place));
	__asm__ volatile("mov %%rsp, %0; mov %%rbx, %1; mov %%rbp, %2"
			 : "=m"(s.stack), "=m"(s.saved[SAVED_RBX]), "=m"(s.saved[SAVED_RBP]));
	__asm__ volatile("mov %%r12, %0; mov %%r13, %1; mov %%r14, %2; mov %%r15, %3"
			 : "=m"(s.saved[SAVED_R12]), "=m"(s.saved[SAVED_R13]), "=m"(s.saved[SAVED_R14]),
			   "=m"(s.saved[SAVED_R15]));
	stack = stack_read(getpid(), &s);
}

static __attribute__((noipa)) void outer(volatile int *room)
{
	volatile char more[300];

	more[0] = (char)*room;
	innermost();
	*room = more[0];
}

static const char *function_of(size_t i)
{
	return text_at(json_array_get(stack, i), "function");
}

Test(report, stack_has_names_and_lines)
{
	volatile int room = 1;

	outer(&room);
	cr_assert_geq(json_array_size(stack), 3);
	cr_expect_str_eq(function_of(0), "innermost");
	cr_expect_str_eq(function_of(1), "outer");
	cr_expect(strstr(text_at(json_array_get(stack, 1), "file"), "unit/report.c"));
	cr_expect_gt(number_at(json_array_get(stack, 1), "line"), 300);
	cr_expect(strstr(text_at(json_array_get(stack, 0), "module"), "report"));
	cr_expect_eq(stack_frame_own(stack), json_array_get(stack, 0));
	json_decref(stack);
}

Test(report, stack_of_nonsense)
{
	struct stack_start s = { .place = 12345, .stack = 0xdead000 };

	stack = stack_read(getpid(), &s);
	cr_expect_leq(json_array_size(stack), 1);
	json_decref(stack);
	stack = stack_read(getpid(), &(struct stack_start){ 0 });
	cr_expect_eq(json_array_size(stack), 0);
	json_decref(stack);
}

/* --- hostile windows -------------------------------------------------------------- */

static long nonsense_read(void *ctx, uint64_t addr, void *buf, size_t len)
{
	uint8_t *out = buf;
	(void)ctx;

	if (addr & 0x100000)
		return -EFAULT;
	for (size_t i = 0; i < len; i++)
		out[i] = (uint8_t)((addr + i) * 2654435761u >> 13);
	return (long)len;
}

/* A program can write anything into its slot: the report is of no use, but is made. */
Test(report, nonsense)
{
	const struct print_mem wild = { nonsense_read, NULL };
	uint64_t seed = 1;
	char *text;
	size_t size;

	for (int round = 0; round < 3000; round++) {
		uint64_t *words = (uint64_t *)&slot;
		json_t *r;
		FILE *f;

		begin();
		for (size_t i = 0; i < sizeof(slot) / 8; i++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			words[i] = round & 1 ? seed : seed >> 57;
		}
		for (int i = 0; i < WINDOW; i++) {
			slot.window[i].event.kind = EVENT_CALL;
			slot.window[i].call = (uint32_t)(seed >> 20) % CALL_MAX;
			slot.window[i].event.call = (uint16_t)slot.window[i].call;
		}
		slot.window[(slot.calls - 1) % WINDOW].end = ROW_OPEN;
		want.mem = &wild;
		want.verdict = (uint32_t)round % VERDICTS;
		want.what = (uint64_t)round % 7;
		want.where = seed;
		r = report_make(&want);
		cr_assert_not_null(r);
		f = open_memstream(&text, &size);
		report_text(f, r);
		fclose(f);
		free(text);
		json_decref(r);
	}
}
