#!/bin/sh
# Rules on running followers: servers/kv, both versions, under load; faulty rules;
# rules that are replaced.
. "$ROOT/tests/rules/lib.sh"
for what in old_leads new_leads in_pieces without faults replaced refused; do
	timeout 100 python3 "$ROOT/tests/rules/at_work.py" $what || fail "$what"
done
