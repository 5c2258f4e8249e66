#!/bin/sh
# Rules on running followers: faulty ones, and rules that are replaced or refused.
. "$ROOT/tests/rules/lib.sh"
for what in faults replaced refused; do
	timeout 100 python3 "$ROOT/tests/rules/at_work.py" $what || fail "$what"
done
