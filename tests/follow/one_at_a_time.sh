#!/bin/sh
# --one-at-a-time: the follower of a program whose threads agree by bare atomics alone lives to
# its end, and no difference was tried again; nor is its twin's, which comes as they work.  None
# of its threads waits for the baton in vain.  A recording of it says how it is to be replayed.
. "$ROOT/tests/lib.sh"

spare_is_there() {
	"$MVE" status "$MVE_SESSION" --json | grep -q '"there": 1'
}

for with in "-f same" "--spare 1" "-f same" "--spare 1"; do
	rm -f go
	"$MVE" run -n "$MVE_SESSION" --one-at-a-time --status status.json $with -- \
		"$TESTS/one_at_a_time" go >out 2>err &
	run=$!
	[ "$with" = "-f same" ] || within 60 spare_is_there || fail "$with: there is none: $(cat err)"
	touch go
	wait $run || fail "$with: status $?: $(cat err)"
	grep -q "^one_at_a_time: ok" out || fail "$with: it printed $(cat out)"
	[ ! -s err ] || fail "$with: mve says: $(head -3 err)"
	python3 "$ROOT/tests/follow/turns.py" 1 || fail "$with: see $PWD/status.json"
done
"$MVE" run -n "$MVE_SESSION" --one-at-a-time --record log -- "$TESTS/one_at_a_time" >out 2>err ||
	fail "recorded: status $?: $(cat err)"
"$MVE" replay -n "$MVE_SESSION" log >out 2>err || fail "replayed: status $?: $(tail -3 out err)"
echo "one_at_a_time: ok"
