#!/bin/sh
# A follower of another release stands in a lock that its leader does not take, with
# another that all its threads want: it goes on, and comes to its leader's end.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/divergence/differs.sh"

together lock_held fewer go
echo "held: ok"
