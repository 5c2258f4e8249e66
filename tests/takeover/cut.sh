#!/bin/sh
# A signal that cuts a wait in a futex short, in a version that has followed and leads: its
# handler runs before the program sees that the wait has ended. (A program that looks then
# whether it is to end, and waits again, would wait for ever: so does Python's main thread.)
. "$ROOT/tests/lib.sh"

cat >cut.c <<'EOF'
#include <semaphore.h>
#include <signal.h>
#include <unistd.h>

static volatile int told;

static void tell(int sig)
{
	told = sig;
}

int main(void)
{
	struct sigaction a = { .sa_handler = tell };
	sem_t s;

	sigaction(SIGTERM, &a, NULL);
	sem_init(&s, 0, 0);
	write(1, "waits\n", 6);
	while (!told)
		sem_wait(&s);
	write(1, "told\n", 5);
	return 0;
}
EOF
gcc -O1 -o cut cut.c -lpthread || fail gcc
waits() { grep -q waits out; }
for moves in "" f1 "f1 v0" "f1 v0 f1"; do
	: >out	# or the one before is looked at
	"$MVE" run -n "$MVE_SESSION" -f same -- ./cut >out 2>err </dev/null &
	within 20 waits || fail "does not begin: $(cat err)"
	for to in $moves; do
		"$MVE" promote "$MVE_SESSION" $to --keep --wait=20 || fail "promote $to: $(cat err)"
	done
	"$MVE" stop "$MVE_SESSION" || { "$MVE" stop --kill "$MVE_SESSION"; fail "waits on behind '$moves'"; }
	wait
	grep -q told out || fail "$(cat out err)"
done
echo "cut: ok"
