/*
 * Suggested rules: whatever the call is that differs, what is suggested is in
 * rulec's language.  That a rule mends what it was suggested for is shown on
 * running versions (tests/divergence/suggest.py).
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "engine/outside/report/report.h"

#define BASE	0x10000ul
#define SPACE	65536
#define HOLE	8192	/* what memory arguments point to, each */

static uint8_t memory[SPACE];
static struct slot slot;

static long memory_read(void *ctx, uint64_t addr, void *buf, size_t len)
{
	(void)ctx;
	if (addr < BASE || addr >= BASE + SPACE)
		return -1;
	if (len > BASE + SPACE - addr)
		len = BASE + SPACE - addr;
	memcpy(buf, memory + (addr - BASE), len);
	return (long)len;
}

static const struct print_mem mem = { memory_read, NULL };

/* A call whose numbers are all this one, and whose memory begins with it. */
static void row_fill(struct window_row *row, const struct call_desc *d, unsigned number)
{
	memset(row, 0, sizeof(*row));
	row->call = (uint32_t)d->nr;
	memset(memory, 0, sizeof(memory));
	for (unsigned i = 0; i < d->nargs; i++) {
		uint8_t *at = memory + i * HOLE;

		row->args[i] = number;
		if (d->args[i].kind < KIND_VALUES)
			continue;
		row->args[i] = BASE + i * HOLE;
		if (d->args[i].what == LAYOUT_iovec)
			*(struct iovec *)at = (struct iovec){ (void *)(BASE + 7 * HOLE), 16 };
		else
			snprintf((char *)at, HOLE, "\"$%u\\\n\377{", number);
	}
	snprintf((char *)memory + 7 * HOLE, HOLE, "pieces %u", number);
}

static json_t *report_of(uint64_t what, uint64_t where)
{
	struct report_want want = {
		.session = "kv", .leader = { "v0", "./kv-1", 10 }, .follower = { "f1", "./kv-2", 20 },
		.tid = 21, .slot = &slot, .verdict = VERDICT_DIVERGED, .policy = "stop",
		.mem = &mem, .what = what, .where = where,
	};

	return report_make(&want);
}

/* The follower makes the call where the leader made another. */
static json_t *of_call(const struct call_desc *d, unsigned number, unsigned unused)
{
	(void)unused;
	row_fill(&slot.window[0], d, number);
	slot.window[0].event = (struct event){ .kind = EVENT_CALL, .call = CALL_listen, .arg = { 1 } };
	return report_of(DIFFERS_CALL, 0);
}

/* Both make the call, and one argument is another. */
static json_t *of_argument(const struct call_desc *d, unsigned number, unsigned arg)
{
	struct event *e = &slot.window[0].event;

	if (arg >= d->nargs)
		return NULL;
	row_fill(&slot.window[0], d, number);
	*e = (struct event){ .kind = EVENT_CALL, .call = (uint16_t)d->nr };
	for (unsigned i = 0; i < EVENT_ARGS; i++)
		e->arg[i] = number + 10000;
	return report_of(d->args[arg].kind < KIND_VALUES ? DIFFERS_VALUE : DIFFERS_BYTES,
			 (uint64_t)arg << 56);
}

static unsigned rules_write(const char *path, json_t *(*make)(const struct call_desc *, unsigned,
							       unsigned), unsigned arg)
{
	FILE *to = fopen(path, "we");
	unsigned rules = 0;

	slot.calls = 1;
	for (long nr = 0; nr < CALL_MAX; nr++) {
		const struct call_desc *d = call_find(nr);
		json_t *r = d ? make(d, (unsigned)nr + 1000, arg) : NULL;
		const char *rule = json_string_value(json_object_get(r, "suggested_rule"));

		/* One or the other. */
		if (r && d->class != CLASS_LOCAL)
			cr_expect_eq(rule == NULL,
				     json_is_string(json_object_get(r, "suggested_why")), "%s", d->name);
		if (rule)
			fprintf(to, "// %s\n%s", d->name, rule);
		rules += rule != NULL;
		json_decref(r);
	}
	fclose(to);
	return rules;
}

/* rulec lies beside the folder of the unit tests. */
static int rulec(const char *what, const char *path, const char *more)
{
	char self[400] = "", command[1200];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	cr_assert_gt(n, 0);
	for (int up = 0; up < 2; up++)
		*strrchr(self, '/') = 0;
	snprintf(command, sizeof(command), "%s/rulec %s %s %s", self, what, path, more);
	return system(command);
}

static void taken(json_t *(*make)(const struct call_desc *, unsigned, unsigned), unsigned arg,
		  unsigned least)
{
	char path[] = "/tmp/mve-suggest-XXXXXX.rules", object[64];
	int fd = mkstemps(path, 6);
	unsigned rules;

	cr_assert_geq(fd, 0);
	close(fd);
	rules = rules_write(path, make, arg);
	cr_expect_geq(rules, least, "%u rules", rules);
	cr_expect_eq(rulec("check", path, ""), 0);
	snprintf(object, sizeof(object), "-o %s.c", path);
	cr_expect_eq(rulec("build", path, object), 0);
	snprintf(object, sizeof(object), "%s.c", path);
	unlink(object);
	unlink(path);
}

Test(suggest, every_call)
{
	taken(of_call, 0, 250);
}

Test(suggest, every_argument)
{
	for (unsigned arg = 0; arg < CALL_ARGS; arg++)
		taken(of_argument, arg, 1);
}
