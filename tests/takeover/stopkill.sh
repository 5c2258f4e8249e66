#!/bin/sh
# mve stop --kill ends all that a session has, at once: many processes whose parent is gone,
# and those of other versions; also when its monitor has been killed.
. "$ROOT/tests/lib.sh"

cat >many.c <<'EOF'
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

/* N processes; their parent waits, ends (gone) or computes (""). */
int main(int argc, char **argv)
{
	(void)argc;
	signal(SIGTERM, SIG_IGN);
	prctl(PR_SET_NAME, argv[1]);
	for (int i = atoi(argv[2]); i > 0; i--)
		if (!fork())
			for (;;)
				pause();
	write(1, "ready\n", 6);
	if (argv[3] && argv[3][0])
		return 0;
	for (;;)
		if (!argv[3])
			pause();
}
EOF
gcc -O1 -D_GNU_SOURCE -o many many.c || fail gcc
name=many-$$
# Those that live: who adopts one that was killed may take its time to look.
alive()
{
	pgrep -r R,S,D,T -cx "$name"
}
count()
{
	[ "$(alive)" -ge "$1" ]
}

# stops WHAT: nobody is there when it has said that.
stops()
{
	"$MVE" stop "$MVE_SESSION" --kill >stop.out 2>&1 || fail "$1: $(cat stop.out)"
	! count 1 || fail "$1: $(alive) are left"
	[ -z "$run" ] || wait "$run" 2>/dev/null
	run=
}

"$MVE" run -n "$MVE_SESSION" -- ./many $name 300 gone >out 2>err
run=
within 20 count 300 || fail "not 300: $(cat err)"
stops "orphans"

"$MVE" run -n "$MVE_SESSION" -- ./many $name 300 >out 2>err &
run=$!
within 20 count 301 || fail "not 301: $(cat err)"
kill -KILL $run
wait $run 2>/dev/null
stops "no monitor"

"$MVE" run -n "$MVE_SESSION" -f same -- ./many $name 20 >out 2>err &
run=$!
within 20 count 42 || fail "not 42: $(cat err)"
within 20 "$MVE" promote "$MVE_SESSION" f1 --keep || fail promote
kill -KILL $run
wait $run 2>/dev/null
stops "no monitor, two versions"

# A follower that computes would read on, and end with nobody but its monitor.
"$MVE" run -n "$MVE_SESSION" -f same -- ./many $name 0 "" >out 2>err &
run=$!
within 20 count 2 || fail "not 2: $(cat err)"
stops "a follower that computes"
echo "stopkill: ok"
