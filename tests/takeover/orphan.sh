#!/bin/sh
# The monitor is killed: the leader goes on, and its followers end, whatever they wait for,
# also those whose leader dies without a word.
. "$ROOT/tests/lib.sh"

cat >waits.c <<'EOF'
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;

static void *locks(void *arg)
{
	pthread_mutex_lock(&one);
	return arg;
}

/* A process that waits for a child, that waits for a thread, that waits for a lock. */
int main(int argc, char **argv)
{
	pthread_t t;

	(void)argc;
	prctl(PR_SET_NAME, argv[1]);
	if (fork())
		return wait(0) < 0;
	pthread_mutex_lock(&one);
	pthread_create(&t, 0, locks, 0);
	write(1, "ready\n", 6);
	pthread_join(t, 0);
	return 0;
}
EOF
gcc -O1 -o waits waits.c -pthread || fail gcc
name=orphan-$$
"$MVE" run -n "$MVE_SESSION" -f same -- ./waits $name >out 2>err &
run=$!
count()
{
	[ "$(pgrep -cx "$name")" = "$1" ]
}
within 20 grep -q ready out || fail "not ready: $(cat err)"
within 20 count 4 || fail "not four processes: $(pgrep -lx "$name")"
leader=$(sed -n 's/.*"server": *\([0-9]*\).*/\1/p' "$XDG_RUNTIME_DIR/mve/$MVE_SESSION/session.json" |
	head -1)
kill -KILL $run
wait $run 2>/dev/null
within 20 count 2 || fail "followers stay: $(pgrep -lx "$name")"
kill -0 "$leader" || fail "the leader is gone"
kill -KILL $(pgrep -x "$name")
within 20 count 0 || fail "somebody stays"
echo "orphan: ok"
