#!/bin/sh
# A ring that is full while an event is half told, or is numbered and not told: what its
# follower waits for is told all the same, and no wait for order is given up.
. "$ROOT/tests/lib.sh"

MVE_LOG=note timeout 60 "$MVE" run --ring 1M --when-full block -n "$MVE_SESSION" \
	--status status.json -f "$TESTS/full_ring" -- "$TESTS/full_ring" >out 2>err
grep -q "full_ring: ok" out || fail "the leader: $(cat out err)"
grep -q '"why": "ended as the leader did"' status.json ||
	fail "$(grep '"why"' status.json) $(cat err)"
! grep "mve\[note\]" err || fail "a wait was given up"
echo "full: ok"
