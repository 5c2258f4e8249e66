#!/bin/sh
# A rule that answers a wait at once, again and again, is a faulty one: the follower would do
# nothing else for as long as the leader waits.
. "$ROOT/tests/lib.sh"

cat >waits.c <<'EOF'
#include <poll.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char c;

	(void)argv;
	while (argc > 1 && !poll(0, 0, 1000000))
		;
	return (int)read(0, &c, 1);
}
EOF
gcc -O1 -o waits waits.c || fail "gcc"
echo 'rule polls @first @discard nothing => poll(_, _, _)' >polls.rules
mkfifo input
"$MVE" run -n "$MVE_SESSION" -f './waits more' --rules polls.rules -- ./waits 2>err <input &
run=$!
exec 3>input
said()
{
	grep -q "rule polls .*answered 100000 calls" err
}
within 50 said || fail "no verdict: $(cat err)"
exec 3>&-
wait "$run" || fail "the leader ended with $?: $(cat err)"
clean
echo "for-ever: ok"
