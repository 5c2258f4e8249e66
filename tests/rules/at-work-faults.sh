#!/bin/sh
# Rules on running followers: faulty ones.
. "$ROOT/tests/rules/lib.sh"
for what in faults; do
	timeout 100 python3 "$ROOT/tests/rules/at_work.py" $what || fail "$what"
done
