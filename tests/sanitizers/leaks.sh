#!/bin/sh
# A search for leaks in a follower whose threads wait finds what it finds natively: all
# that they have lost, and nothing that a register of theirs holds.
. "$ROOT/tests/sanitizers/lib.sh"
need gcc
flags="$flags -w"
EDITIONS="gcc-address gcc-leak clang-19-address clang-19-leak"

searched()
{
	! grep -q "leak of 555\|leak of 2220" "$1" || fail "$with: $1: no leak: $(cat "$1")"
	grep -q "leak of 3108 byte(s) in 4 object" "$1" || fail "$with: $1: not all: $(cat "$1")"
}

build_all "$ROOT/tests/sanitizers/leaks.c"
for with in $made; do
	"./$with" >alone 2>&1
	searched alone
	rm -rf "$XDG_STATE_HOME/mve/$name"
	"$MVE" run -n "$name" -f "./$with" -- ./native >out 2>err || fail "$with: $(cat out err)"
	"$MVE" report "$name" >followed || fail "$with: nothing is found: $(cat err)"
	searched followed
done
echo "leaks: ok"
