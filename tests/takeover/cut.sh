#!/bin/sh
# A signal that cuts a wait in a futex short, in a version that has followed and leads: its
# handler runs before the program sees that the wait has ended. (A program that looks then
# whether it is to end, and waits again, would wait for ever: so does Python's main thread.)
# Behind a handler with SA_RESTART the program sees no cut, as natively, nor does its follower.
. "$ROOT/tests/lib.sh"

cat >cut.c <<'EOF'
#include <semaphore.h>
#include <signal.h>
#include <unistd.h>

static volatile int told;
static sem_t s;

static void tell(int sig)
{
	told = sig;
}

static void post(int sig)
{
	sem_post(&s);
	tell(sig);
}

int main(int argc, char **argv)
{
	struct sigaction a = { .sa_handler = tell }, again = { .sa_handler = post,
							       .sa_flags = SA_RESTART };

	sigaction(SIGTERM, argc > 1 ? &again : &a, NULL);
	sem_init(&s, 0, 0);
	write(1, "waits\n", 6);
	while (!told)
		if (sem_wait(&s) && argc > 1)
			write(1, "cut\n", 4);
	write(1, "told\n", 5);
	return 0;
}
EOF
gcc -O1 -o cut cut.c -lpthread || fail gcc
waits() { grep -q waits out; }
# ended MOVES [WORD]: moved so often, it is told to end, and both end alike
ended() {
	: >out	# or the one before is looked at
	"$MVE" run -n "$MVE_SESSION" -f same -- ./cut $2 >out 2>err </dev/null &
	within 20 waits || fail "does not begin: $(cat err)"
	for to in $1; do
		"$MVE" promote "$MVE_SESSION" $to --keep --wait=20 || fail "promote $to: $(cat err)"
	done
	"$MVE" stop "$MVE_SESSION" || { "$MVE" stop --kill "$MVE_SESSION"; fail "waits on behind '$1'"; }
	wait
	grep -q told out || fail "$(cat out err)"
	grep -q cut out && fail "behind '$1' a wait is cut that is to go on"
	grep -q 'diverged' err && fail "behind '$1': $(cat err)"
}
for moves in "" f1 "f1 v0" "f1 v0 f1"; do
	ended "$moves"
done
ended f1 again
ended "f1 v0" again
echo "cut: ok"
