#!/bin/sh
# mve promote: --dry-run changes nothing, --wait waits for what passes, and status 0 means
# that the follower leads.
. "$ROOT/tests/lib.sh"

"$MVE" run -n "$MVE_SESSION" -f same -f same -- "$TESTS/ticks" >ticks 2>log </dev/null &
mve=$!
trap '"$MVE" stop "$MVE_SESSION" --kill 2>/dev/null' EXIT

role()
{
	"$MVE" status "$MVE_SESSION" --json | python3 -c "
import json, sys
print(next(v['role'] for v in json.load(sys.stdin)['versions'] if v['name'] == '$1'))"
}
follow() { [ "$(role f1)" = follower ] && [ "$(role f2)" = follower ]; }
within 10 follow || fail "no followers: $(cat log)"

"$MVE" promote "$MVE_SESSION" f1 --dry-run >out 2>err || fail "--dry-run: $(cat err)"
grep -q "^f1: " out || fail "--dry-run says nothing: $(cat out)"
[ "$(role f1)" = follower ] || fail "--dry-run has promoted"
for wrong in --wait=x --wait=-1 --wait= --dry; do
	"$MVE" promote "$MVE_SESSION" f1 $wrong 2>err
	[ $? = 2 ] || fail "$wrong is taken: $(cat err)"
done
"$MVE" promote "$MVE_SESSION" v0 --dry-run 2>err
[ $? = 1 ] && grep -q "it leads" err || fail "the leader could be promoted: $(cat err)"
"$MVE" promote "$MVE_SESSION" none --wait 2>err
[ $? = 1 ] && grep -q "no such follower" err || fail "none: $(cat err)"

# To and fro without a pause: what is against it passes.
for to in f1 v0 f2 f1 v0; do
	"$MVE" promote "$MVE_SESSION" $to --keep --wait 2>err || fail "$to: $(cat err)"
	[ "$(role $to)" = leader ] || fail "status 0, and $to does not lead"
done
"$MVE" stop "$MVE_SESSION" || fail "cannot stop it"
wait $mve
trap - EXIT
clean
echo "takeover_words: ok"
