#!/bin/sh
# A follower of another release stands in a lock that its leader does not take, with
# another that all its threads want: it goes on, and comes to its leader's end.
. "$ROOT/tests/lib.sh"

level()
{
	"$MVE" status "$MVE_SESSION" --json >now.json 2>/dev/null &&
		python3 "$ROOT/tests/follow/steady.py" now.json 1 1000000 >level
}

mkfifo input
"$MVE" run -n "$MVE_SESSION" --status status.json -f "$TESTS/lock_held" \
	-- "$TESTS/lock_held" fewer >out 2>err <input &
exec 3>input
sleep 0.3
echo >&3
within 20 level || fail "$(cat level err)"
exec 3>&-
wait
grep -q "lock_held: ok" out || fail "the leader: $(cat out)"
grep -q '"why": "ended as the leader did"' status.json ||
	fail "$(grep '"why"' status.json) $(cat err)"
echo "held: ok"
