#!/bin/sh
# A follower that reads a clock more often than its leader: the clock goes on.
. "$ROOT/tests/rules/lib.sh"
timeout 20 "$MVE" run -n "$MVE_SESSION" -f "$TESTS/clock_more more" -- "$TESTS/clock_more" >out 2>err </dev/null ||
	fail "$(cat err)"
grep -q "the clock goes" out || fail "the leader: $(cat out)"
! grep -q diverged err || fail "$(cat err)"
echo "clocks: ok"
