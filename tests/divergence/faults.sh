#!/bin/sh
# Every planted fault of tests/programs/differ.c is reported with its call, the
# first byte that differs and its line.
. "$ROOT/tests/lib.sh"
exec python3 "$ROOT/tests/divergence/faults.py"
