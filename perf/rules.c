/*
 * What rules cost a follower: nanoseconds per call with 0, 10, 100 and 1,000
 * rules loaded, and how long it takes to compile them.
 *
 *	build/perf/rules [RULEC]	(build/rulec)
 *
 * unnamed	the leader's call is one that no rule begins with
 * matched	one rule takes it; the others begin with other calls
 * shared	all rules begin with the call and differ in content: none takes it
 * last	the same, and the last of them takes it
 * guarded	all rules begin with the call and have one guard, which says no
 * longer	all rules begin with the same two calls and end with another third
 *
 * Each figure is the least of several rounds: what disturbs only adds. The
 * object runs as it does in the inside, but bytes come from an array.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/core/rules.c"
#include "engine/core/table.c"

void must_failed(const char *place)
{
	fprintf(stderr, "rules: %s\n", place);
	abort();
}

#define ROUNDS	7
#define CALLS	20000

enum kind { UNNAMED, MATCHED, SHARED, LAST, GUARDED, LONGER, KINDS };

static const char *const kinds[] = { "unnamed", "matched", "shared", "last", "guarded",
	"longer" };

/* Calls to hang the other rules on: recorded, with nothing in common with ours. */
static const char *const others[] = { "getuid", "getgid", "geteuid", "getegid", "getppid",
	"getpgrp", "gettid", "getpid" };

static void rule_write(FILE *to, enum kind kind, unsigned i, bool last)
{
	const char *other = others[i % 8];

	if (kind == LAST && last)
		fprintf(to, "write(_, \"a reply…\", _) => write(_, _, _)\n");
	else if (kind == GUARDED)
		fprintf(to, "write(_, s, _) { view_begins($(s), \"key\") } => write(_, _, %u)\n", i);
	else if (kind == SHARED || kind == LAST)
		fprintf(to, "write(_, \"key %u \", _) => write(_, _, _)\n", i);
	else if (kind == LONGER)
		fprintf(to, "write(_), dup(_), dup2(%u, _) => write(_), dup(_), dup2(_)\n", i);
	else if (kind == MATCHED && i == 0)
		fprintf(to, "write(1, \"a reply…\", _) => write(1, _, _)\n");
	else
		fprintf(to, "%s(), %s(), dup(%u) => %s()\n", other, other, i, other);
}

static void rules_write(const char *path, enum kind kind, unsigned n)
{
	FILE *to = fopen(path, "we");

	for (unsigned i = 0; to && i < n; i++)
		rule_write(to, kind, i, i + 1 == n);
	if (!to || fclose(to))
		exit(3);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* --- a host ---------------------------------------------------------------- */

struct stream {
	struct rules_call event[3];
	struct rules rules;
	struct rules_state state;
	struct rules_call call;
	unsigned n;
};

static const struct rules_call *peek(void *arg, unsigned i)
{
	struct stream *s = arg;

	return i < s->n ? &s->event[i] : NULL;
}

static struct view bytes(void *arg, const struct rules_call *call, unsigned i)
{
	(void)arg, (void)call;
	return i == 1 ? view_of("a reply to a request", 20) : view_none();
}

static const struct rules_host host = { peek, bytes };

static void stream_fill(struct stream *s, enum kind kind)
{
	unsigned first = kind == UNNAMED ? CALL_lseek : CALL_write;

	s->event[0] = (struct rules_call){ .nr = first, .args = { 1, 2, 20 }, .ret = 20 };
	s->event[1] = (struct rules_call){ .nr = CALL_dup };
	s->event[2] = (struct rules_call){ .nr = CALL_dup2, .args = { 1u << 30 } };
	s->call = s->event[0];
	s->n = kind == LONGER ? 3 : 1;
	s->state.begun = 1;
}

static double round_ns(struct stream *s)
{
	static uint8_t room[4096];
	struct rules_answer answer;
	volatile unsigned sum = 0;
	double begin = now();

	for (unsigned i = 0; i < CALLS; i++) {
		struct rules_run run;

		run.host = &host;
		run.arg = s;
		run.state = &s->state;
		run.call = &s->call;
		run.room = room;
		run.room_size = sizeof(room);
		run.scope = RULES_THREAD;
		run.expired = 0;
		sum += rules_next(&s->rules, &run, &answer);
	}
	return (now() - begin) / CALLS;
}

static double measure(const char *object, enum kind kind)
{
	struct stream *s = calloc(1, sizeof(*s));
	void *loaded = dlopen(object, RTLD_NOW | RTLD_LOCAL);
	double best = 1e12;

	if (!s || !loaded || rules_attach(&s->rules, (rules_entry *)dlsym(loaded, "mve_rules")))
		exit(3);
	stream_fill(s, kind);
	for (unsigned i = 0; i < ROUNDS; i++) {
		double ns = round_ns(s);

		best = ns < best ? ns : best;
	}
	dlclose(loaded);
	free(s);
	return best;
}

static void line(const char *rulec, enum kind kind, unsigned n, const char *folder)
{
	char rules[128], object[128], command[512];
	double begin, compile_ms;

	snprintf(rules, sizeof(rules), "%s/r.rules", folder);
	snprintf(object, sizeof(object), "%s/%s%u.so", folder, kinds[kind], n);
	snprintf(command, sizeof(command), "%s build %s -o %s 2>/dev/null", rulec, rules, object);
	rules_write(rules, kind, n);
	begin = now();
	if (system(command) != 0) {
		fprintf(stderr, "perf/rules: cannot compile %u rules (%s)\n", n, kinds[kind]);
		exit(3);
	}
	compile_ms = (now() - begin) / 1e6;
	printf("%-10s %6u %12.1f %14.0f\n", kinds[kind], n, measure(object, kind), compile_ms);
	fflush(stdout);
	unlink(rules);
	unlink(object);
}

int main(int argc, char **argv)
{
	static const unsigned counts[] = { 0, 10, 100, 1000 };
	char folder[] = "/tmp/perf-rules-XXXXXX";

	if (!mkdtemp(folder))
		return 3;
	printf("%-10s %6s %12s %14s\n", "case", "rules", "ns/event", "compile, ms");
	for (unsigned kind = 0; kind < KINDS; kind++)
		for (unsigned i = kind == UNNAMED ? 0 : 1; i < 4; i++)
			line(argc > 1 ? argv[1] : "build/rulec", kind, counts[i], folder);
	rmdir(folder);
	return 0;
}
