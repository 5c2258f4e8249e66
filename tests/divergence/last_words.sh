#!/bin/sh
# A leader that gives up writes down why: a follower that does not leads from there.
. "$ROOT/tests/lib.sh"

follows() {
	"$MVE" status "$MVE_SESSION" --json | grep -q '"role": "follower"'
}

"$MVE" run -n "$MVE_SESSION" -f "$TESTS/last_words lives" -- "$TESTS/last_words" >out 2>err &
run=$!
within 60 follows || fail "nobody follows: $(cat out err)"
touch go
wait $run || fail "$(cat out err)"
grep -q "f1 leads (v0 crashed: SIGABRT" err || fail "it does not lead: $(cat err)"
grep -q "last_words: ok" out || fail "it did not go on: $(cat out err)"
[ -f dead/words ] || fail "the leader wrote nothing"
clean
echo "last_words: ok"
