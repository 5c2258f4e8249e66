#!/bin/sh
# mve stop while a follower's sanitizer is at the end of its process, for longer than a
# server has: it waits for the session, which ends that, and does not say that the server
# runs.
. "$ROOT/tests/sanitizers/lib.sh"
need gcc

# shellcheck disable=SC2086 # words
gcc $flags "$ROOT/tests/sanitizers/stop.c" -o native &&
	gcc $flags -DSLOW -fsanitize=undefined "$ROOT/tests/sanitizers/stop.c" -o slow ||
	fail "it does not build"
"$MVE" run -n "$name" -f ./slow -- ./native >server.log 2>&1 </dev/null &
server=$!
left $server
within 20 grep -q ready server.log || trouble "it does not start"
within 20 sh -c "'$MVE' status '$name' | grep -q 'f1  *follower'" || trouble "no follower"
begun=$(date +%s)
"$MVE" stop "$name" >out 2>&1 || trouble "mve stop: $(cat out)"
[ $(($(date +%s) - begun)) -ge 12 ] || trouble "its end was not slow"
within 30 gone "$server" || trouble "the session stays"
session_ended
grep -q "found: signed integer overflow" server.log || trouble "nothing was found"
echo "stop: ok"
