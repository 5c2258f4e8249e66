#!/bin/sh
# Rules on running followers: servers/kv, both versions, under load, before and
# after a promotion.
. "$ROOT/tests/rules/lib.sh"
for what in old_leads new_leads promoted releases in_pieces new_in_pieces without; do
	timeout 100 python3 "$ROOT/tests/rules/at_work.py" $what || fail "$what"
done
