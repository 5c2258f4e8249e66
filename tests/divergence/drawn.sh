#!/bin/sh
# Names that libc draws for files are the leader's in a follower of another build, too; a
# name that the program makes up is compared as ever.
. "$ROOT/tests/lib.sh"

# held LEADER FOLLOWER: the arguments of both.
held()
{
	# Words: arguments of the program.
	# shellcheck disable=SC2086
	"$MVE" run -n "$MVE_SESSION" --status status.json -f "$TESTS/drawn $2" \
		-- "$TESTS/drawn" $1 >out 2>err || fail "$*: $(cat out err)"
	grep -q "drawn: ok" out || fail "$*: the leader: $(tail -3 out)"
}

held 16 4000
grep -q '"why": "ended as the leader did"' status.json || fail "$(cat err)"
[ "$(sort out | uniq -d)" = "" ] || fail "a name came twice"
held "16 $PWD/name-aaaaaa" "4000 $PWD/name-bbbbbb-"
grep -q "diverged: openat.*argument path differs" err || fail "another name is not found: $(cat err)"
clean
echo "drawn: ok"
