#!/bin/sh
# Two registrations of an epoll set with the same data in the leader, and not in the follower:
# when the later one is gone the earlier one's data are its own still, in both.  And that of
# more than a table holds, one after the other, the last one is known.
. "$ROOT/tests/lib.sh"

held()
{
	# Words: arguments of the program.
	# shellcheck disable=SC2086
	"$MVE" run -n "$MVE_SESSION" --status status.json -f "$TESTS/same_data $2" \
		-- "$TESTS/same_data" $1 >out 2>err || fail "$*: $(cat out err)"
	[ "$(uniq out)" = "its data
same_data: ok" ] || fail "$*: the leader: $(cat out)"
	grep -q '"why": "ended as the leader did"' status.json || fail "$*: $(cat err)"
}

held "1000 1000" "2000 3000"
held "1000 3000" "2000 2000"
held "1000 3000 1100000" "2000 2000 1100000"
clean
echo "same_data: ok"
