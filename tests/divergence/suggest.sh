#!/bin/sh
# What a report says of rules: the one that it suggests mends the divergence, and of
# the one that came nearest it tells what that wanted and what it had.
. "$ROOT/tests/lib.sh"
exec python3 "$ROOT/tests/divergence/suggest.py"
