#!/bin/sh
# ^C and SIGTERM reach the program, whose status and fatal signal are mve's.
. "$ROOT/tests/lib.sh"

# Starts a session that waits; the shell gives background jobs an ignored
# SIGINT, so python puts the signal's default back first.
start()
{
	python3 -c 'import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])' "$MVE" run -n "$MVE_SESSION" -- "$@" &
	monitor=$!
	within 30 test -e ready || fail "the program never came up"
}

for sig in 1 2 10 15; do
	rm -f ready
	start sh -c 'touch ready; exec sleep 30'
	sleep 0.1
	kill -$sig $monitor
	wait $monitor
	status=$?
	[ $status = $((128 + sig)) ] || fail "$sig: status $status"
	clean
done

# A program that handles it, and ends as it likes.
rm -f ready
start sh -c 'trap "exit 42" TERM; touch ready; while :; do sleep 0.05; done'
kill -TERM $monitor
wait $monitor
status=$?
[ $status = 42 ] || fail "handled TERM: status $status"
clean
