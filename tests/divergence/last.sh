#!/bin/sh
# What a follower does last is compared, though its leader has long ended; or it is said
# that it was not.
. "$ROOT/tests/lib.sh"

cat >last.c <<'EOF'
#include <unistd.h>

int main(int argc, char **argv)
{

	if (argc > 1 && argv[1][0] == 'c')	/* computes: longer than an idle one is waited for */
		for (volatile long i = 0; i < 4000000000; i++)
			;
	if (argc > 1 && argv[1][0] == 's')
		sleep(60);
	write(1, argc > 1 ? "other\n" : "right\n", 6);
	_exit(0);
}
EOF
gcc -O1 -o last last.c 2>err || fail "gcc: $(cat err)"
"$MVE" run -n "$MVE_SESSION" -f './last computes' -- ./last >out 2>err || fail "status $?"
grep -q 'diverged: write(1, "other\\n"' err || grep -q 'killed: what the leader did last' err ||
	fail "computes: $(cat err)"
echo 'nothing => clock_nanosleep(_, _, _, _)' >own.rules
"$MVE" run -n "$MVE_SESSION" -f './last sleeps' --rules own.rules -- ./last >out 2>err ||
	fail "status $?"
[ "$(grep -c 'killed: what the leader did last is not compared' err)" = 1 ] ||
	fail "sleeps: $(cat err)"
clean
echo "last: ok"
