#!/bin/sh
# Rules on running followers that are replaced, damaged, made for another mve, or
# refused; a cache that cannot be written or holds half a file
# or old ones.
. "$ROOT/tests/rules/lib.sh"
for what in replaced hundred spoiled_cache old_cache refused; do
	timeout 100 python3 "$ROOT/tests/rules/at_work.py" $what || fail "$what"
done
