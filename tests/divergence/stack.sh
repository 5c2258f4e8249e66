#!/bin/sh
# A report's stack leads from the call to _start: through an inlined function, a callback
# of libc, a signal's handler on a stack of its own, and code without tables.
. "$ROOT/tests/lib.sh"

cat >stack.c <<'EOF'
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static inline __attribute__((always_inline)) void say(void)
{
	static const char text[] = { '0' + VERSION, '\n' };

	write(1, text, 2);
}

__attribute__((noinline)) static int deeper(int n)
{
	if (!n)
		say();
	return n ? deeper(n - 1) + 1 : 0;
}

static int compared(const void *a, const void *b)
{
	return deeper(3) * (*(const char *)a - *(const char *)b);
}

static void handler(int sig)
{
	exit(deeper(sig - sig) != 0);
}

int main(int argc, char **argv)
{
	stack_t own = { .ss_sp = malloc(65536), .ss_size = 65536 };
	struct sigaction sa = { .sa_handler = handler, .sa_flags = SA_ONSTACK };
	char two[2] = { 2, 1 };

	if (argc > 1 && argv[1][0] == 'c')
		qsort(two, 2, 1, compared);
	sigaltstack(&own, NULL);
	sigaction(SIGUSR1, &sa, NULL);
	return raise(SIGUSR1);
}
EOF

# names WAY: the functions that the report names, innermost first, in a line.
names()
{
	"$MVE" run -n "$MVE_SESSION" -f "./new $1" -- ./old "$1" >out 2>err || fail "$(cat err)"
	"$MVE" report --json "$MVE_SESSION" >report.json || fail "no report: $(cat err)"
	python3 -c 'import json, sys
for f in json.load(sys.stdin)["follower"]["stack"]:
    print(f.get("function", "?"), end=" ")' <report.json
}

# leads WAY NAMES: the report's stack has these functions in this order.
leads()
{
	got=$(names "$1") || exit 1
	echo "$got" | grep -qE "$2" || fail "$1: $got"
}

build()
{
	gcc "$@" -DVERSION=1 -o old stack.c 2>err && gcc "$@" -DVERSION=2 -o new stack.c 2>err ||
		fail "gcc: $(cat err)"
}

build -O2 -g
leads callback "say deeper compared .*qsort.* main .*_start "
leads signal "say deeper handler .*raise main .*_start "
build -O1 -fno-omit-frame-pointer -fno-asynchronous-unwind-tables
leads callback "deeper .*compared .*qsort.* main .*_start "
leads signal "deeper .*handler .*raise main .*_start "
clean
echo "stack: ok"
