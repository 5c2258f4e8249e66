#!/bin/sh
# A follower's thread that leaves out its leader's clock readings still takes its
# locks in order, and no other thread of it waits for what it has done.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/divergence/differs.sh"

together clock_aside reads
grep -q '"locks_unordered": [1-9]' status.json && fail "locks out of order: $(grep locks_un status.json)"
echo "aside: ok"
