#!/bin/sh
# What stands in front of the stream when rules are asked: a call that a rule drops,
# at a lock; a query that is for what comes behind a call that a rule adds.
. "$ROOT/tests/rules/lib.sh"
cat >fronts.rules <<-'RULES'
	rule dropped openat(_, "/dev/zero", _, _) as o, close(fd) { $(fd) == $(o.ret) } => nothing
	rule added nothing => dup(_)
RULES
timeout 20 "$MVE" run -n "$MVE_SESSION" --status now.json -f "$TESTS/rule_fronts new" \
	--rules fronts.rules -- "$TESTS/rule_fronts" >out 2>err </dev/null || fail "$(cat err)"
grep -q "rule_fronts: ok" out || fail "the leader: $(cat out)"
grep -q "ended as the leader did" now.json || fail "the follower: $(cat err now.json)"
echo "fronts: ok"
