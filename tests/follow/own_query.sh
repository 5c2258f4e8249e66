#!/bin/sh
# A follower asks more of its descriptors than its leader: it is answered as that would be.
. "$ROOT/tests/lib.sh"

name=asks-$$
mkfifo input
"$MVE" run -n "$MVE_SESSION" -f "$TESTS/own_query $name more" -- "$TESTS/own_query" "$name" \
	>out 2>err <input &
run=$!
exec 3>input
# Both have asked what they will when they are named so.
named()
{
	[ "$(pgrep -cx "$name")" = "$1" ]
}
within 20 named 2 || fail "they did not come so far: $(cat err)"
exec 3>&-
wait "$run" || fail "status $?: $(cat err)"
grep -q "own_query: ok" out || fail "output: $(cat out err)"
[ ! -s err ] || fail "$(cat err)"
clean
echo "own_query: ok"
