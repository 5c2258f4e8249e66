#!/bin/sh
# A process of the leader is stopped, as a shell's job: it comes to no call, so a promotion
# would wait for it while all others stand.  It is refused at once, --wait is over when it
# says, and the server goes on.
. "$ROOT/tests/lib.sh"

cat >job.c <<'EOF'
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int told;

static void tell(int sig)
{
	told = sig;
}

int main(void)
{
	pid_t child = fork();

	if (!child) {
		raise(SIGSTOP);
		_exit(0);
	}
	signal(SIGTERM, tell);
	waitpid(child, NULL, WUNTRACED);
	write(1, "stopped\n", 8);
	while (!told)
		usleep(1000);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	write(1, "told\n", 5);
	return 0;
}
EOF
gcc -O1 -o job job.c || fail gcc
stopped() { grep -q stopped out; }
"$MVE" run -n "$MVE_SESSION" -f same -- ./job >out 2>err </dev/null &
within 20 stopped || fail "does not begin: $(cat err)"
timeout 40 "$MVE" promote "$MVE_SESSION" f1 --keep --wait=2 2>why
code=$?
[ $code = 1 ] || fail "promote: $code: $(cat why)"
grep -q "the leader's thread [0-9]* is stopped" why || fail "$(cat why)"
"$MVE" stop "$MVE_SESSION" || { "$MVE" stop --kill "$MVE_SESSION"; fail "does not end"; }
wait
grep -q told out || fail "$(cat out err)"
echo "stopped: ok"
