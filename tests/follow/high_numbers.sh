#!/bin/sh
# Descriptors by the thousand, in a follower whose pointers are others.
. "$ROOT/tests/lib.sh"

"$MVE" run -n "$MVE_SESSION" --status status.json -f "$TESTS/high_numbers 4096" \
	-- "$TESTS/high_numbers" 0 >out 2>err || fail "$(cat out err)"
grep -q "high_numbers: ok" out || fail "the leader: $(cat out)"
grep -q '"why": "ended as the leader did"' status.json || fail "$(cat err)"
clean
echo "high_numbers: ok"
