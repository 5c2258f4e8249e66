#!/bin/sh
# --one-at-a-time: the follower of a program whose threads agree by bare atomics alone lives to
# its end, and no difference was tried again.
. "$ROOT/tests/lib.sh"

for turn in 1 2 3; do
	"$MVE" run -n "$MVE_SESSION" --one-at-a-time --status status.json -f same -- \
		"$TESTS/one_at_a_time" >out 2>err || fail "status $?: $(cat err)"
	grep -q "^one_at_a_time: ok" out || fail "it printed $(cat out)"
	[ ! -s err ] || fail "mve says: $(head -3 err)"
	python3 - <<-'END' || fail "see $PWD/status.json"
	import json
	leader, follower = json.load(open("status.json"))["versions"]
	assert not follower["rewind"]["races"], follower["rewind"]
	assert follower["verdicts"] == leader["verdicts"], follower["verdicts"]
	END
done
echo "one_at_a_time: ok"
