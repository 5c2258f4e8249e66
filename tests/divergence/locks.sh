#!/bin/sh
# A follower's threads take each lock in the leader's order: these programs write
# down who came when, which is another story in every run, and the follower's
# must be the leader's.
. "$ROOT/tests/lib.sh"

# follows TIER PROGRAM...
follows()
{
	tier=$1
	shift
	[ -x "$1" ] || return 0
	timeout 60 "$MVE" run -n "$MVE_SESSION" --tier="$tier" --status status.json \
		-f same -- "$@" >out 2>err </dev/null || fail "$tier: $*: status $?: $(cat err)"
	tail -1 out | grep -q ': ok$' || fail "$tier: $*: left early: $(cat out)"
	grep -q '"why": "ended as the leader did"' status.json ||
		fail "$tier: $*: $(grep '"why"' status.json) $(cat err)"
	rm -f ./*.log
	clean
}

for i in 1 2 3; do
	for program in locks locks_static statics; do
		follows patch "$TESTS/$program"
	done
	follows trap "$TESTS/locks"
done
