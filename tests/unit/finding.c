/*
 * What is read in sanitizers' reports: tool, kind, function and place; which are equal.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "engine/outside/report/finding.h"

static const char address[] =
	"=================================================================\n"
	"==7==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x602000000016 at pc 0x1\n"
	"READ of size 1 at 0x602000000016 thread T0\n"
	"    #0 0x55d in memcpy ../../../../src/libsanitizer/x.inc:1\n"
	"    #1 0x55d in hex_byte /src/request.c:12\n"
	"    #2 0x55e in main (/src/httpd+0x11d)\n"
	"\n"
	"0x602000000016 is located 0 bytes to the right of 6-byte region\n"
	"allocated by thread T0 here:\n"
	"    #0 0x7f in __interceptor_malloc x.cpp:145\n"
	"    #1 0x55d in parse(int, char const*) /src/request.c:40\n"
	"\n"
	"SUMMARY: AddressSanitizer: heap-buffer-overflow /src/request.c:12 in hex_byte\n";

static const char *text_at(const json_t *j, const char *key)
{
	const char *text = json_string_value(json_object_get(j, key));

	return text ? text : "";
}

static void expect(const char *report, const char *tool, const char *summary)
{
	json_t *all = finding_read(report);
	char text[200] = "";

	cr_assert_eq(json_array_size(all), 1, "%zu findings", json_array_size(all));
	finding_summary(json_array_get(all, 0), text, sizeof(text));
	cr_expect_str_eq(text_at(json_array_get(all, 0), "tool"), tool);
	cr_expect_str_eq(text, summary);
	json_decref(all);
}

Test(finding, heads)
{
	expect(address, "AddressSanitizer", "heap-buffer-overflow in hex_byte at request.c:12");
	expect("==7==ERROR: AddressSanitizer: SEGV on unknown address 0x0 (pc 0x1)\n",
	       "AddressSanitizer", "SEGV");
	expect("==7==ERROR: AddressSanitizer: attempting double-free on 0x602 in thread T0:\n",
	       "AddressSanitizer", "attempting double-free");
	expect("==9==ERROR: LeakSanitizer: detected memory leaks\n\n"
	       "Direct leak of 4 byte(s) in 1 object(s) allocated from:\n"
	       "    #0 0x7f in __interceptor_malloc x.cpp:145\n    #1 0x5 in main /src/a.c:3\n",
	       "LeakSanitizer", "detected memory leaks in main at a.c:3");
	expect("==9==WARNING: MemorySanitizer: use-of-uninitialized-value\n"
	       "    #0 0x5 in main /src/a.c:3:9\n",
	       "MemorySanitizer", "use-of-uninitialized-value in main at a.c:3:9");
	expect("==================\nWARNING: ThreadSanitizer: data race (pid=7)\n"
	       "  Write of size 4 at 0x5 by thread T1:\n    #0 run race.c:9 (race+0x12)\n",
	       "ThreadSanitizer", "data race in run at race.c:9");
	expect("/src/kv.c:12:3: runtime error: signed integer overflow: 1 + 2 cannot be\n",
	       "UndefinedBehaviorSanitizer", "signed integer overflow at kv.c:12:3");
}

Test(finding, stacks)
{
	json_t *all = finding_read(address), *stacks, *frames;

	stacks = json_object_get(json_array_get(all, 0), "stacks");
	cr_assert_eq(json_array_size(stacks), 2);
	cr_expect_str_eq(text_at(json_array_get(stacks, 1), "title"),
			 "allocated by thread T0 here:");
	frames = json_object_get(json_array_get(stacks, 1), "frames");
	cr_assert_eq(json_array_size(frames), 2);
	cr_expect_str_eq(text_at(json_array_get(frames, 1), "function"), "parse(int, char const*)");
	cr_expect_str_eq(text_at(json_array_get(frames, 1), "place"), "/src/request.c:40");
	json_decref(all);
}

/* Addresses and numbers of processes differ in each run; where it is does not. */
Test(finding, equal)
{
	static const char a[] = "a.c:1:2: runtime error: signed integer overflow: 1 + 2\n",
		b[] = "a.c:1:2: runtime error: signed integer overflow: 3 + 4\n",
		c[] = "a.c:1:9: runtime error: signed integer overflow: 1 + 2\n";
	char other[sizeof(address)];
	json_t *x, *y;

	memcpy(other, address, sizeof(address));
	memcpy(strstr(other, "==7=="), "==8==", 5);
	memcpy(strstr(other, "0x55d"), "0x77d", 5);
	x = finding_read(address);
	y = finding_read(other);
	cr_expect_eq(finding_key(json_array_get(x, 0)), finding_key(json_array_get(y, 0)));
	json_decref(x);
	json_decref(y);
	x = json_pack("[o, o, o]", finding_read(a), finding_read(b), finding_read(c));
	cr_expect_eq(finding_key(json_array_get(json_array_get(x, 0), 0)),
		     finding_key(json_array_get(json_array_get(x, 1), 0)));
	cr_expect_neq(finding_key(json_array_get(json_array_get(x, 0), 0)),
		      finding_key(json_array_get(json_array_get(x, 2), 0)));
	json_decref(x);
}

/* Several in one go, and what is none. */
Test(finding, several)
{
	json_t *all = finding_read("a.c:1:2: runtime error: x: 1\nb.c:2:2: runtime error: y: 1\n");

	cr_expect_eq(json_array_size(all), 2);
	cr_expect_str_eq(text_at(json_array_get(all, 0), "text"), "a.c:1:2: runtime error: x: 1\n");
	json_decref(all);
	all = finding_read("Shadow memory range interleaves\n#0\n  #\n    #1\n==\xff\n");
	cr_expect_eq(json_array_size(all), 0);
	json_decref(all);
}
