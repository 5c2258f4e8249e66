#!/bin/sh
# A follower's thread that leaves out its leader's clock readings still takes its
# locks in order, and no other thread of it waits for what it has done.
. "$ROOT/tests/lib.sh"

level()
{
	"$MVE" status "$MVE_SESSION" --json >now.json 2>/dev/null &&
		python3 "$ROOT/tests/follow/steady.py" now.json 1 1000000 >level
}

mkfifo input
"$MVE" run -n "$MVE_SESSION" --status status.json -f "$TESTS/clock_aside" \
	-- "$TESTS/clock_aside" reads >out 2>err <input &
exec 3>input
within 15 level || fail "$(cat level err)"
exec 3>&-
wait
grep -q "clock_aside: ok" out || fail "the leader: $(cat out)"
grep -q '"why": "ended as the leader did"' status.json ||
	fail "$(grep '"why"' status.json) $(cat err)"
echo "aside: ok"
