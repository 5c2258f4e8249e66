# Sourced: a follower that differs from its leader in what it need not do goes on with it.

# together PROGRAM LEADERS [LINE]: the leader has that argument, the follower none; LINE is
# what it reads once it has begun.  The follower comes level with its leader while that
# waits for its input's end, and then to its leader's end.
together()
{
	mkfifo input
	"$MVE" run -n "$MVE_SESSION" --status status.json -f "$TESTS/$1" \
		-- "$TESTS/$1" "$2" >out 2>err <input &
	exec 3>input
	[ -z "$3" ] || { sleep 0.3; echo "$3" >&3; }
	within 20 level || fail "$(cat level err)"
	exec 3>&-
	wait
	grep -q "$1: ok" out || fail "the leader: $(cat out)"
	grep -q '"why": "ended as the leader did"' status.json ||
		fail "$(grep '"why"' status.json) $(cat err)"
}

level()
{
	"$MVE" status "$MVE_SESSION" --json >now.json 2>/dev/null &&
		python3 "$ROOT/tests/follow/steady.py" now.json 1 1000000 >level
}
