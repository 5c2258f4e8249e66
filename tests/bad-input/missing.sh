#!/bin/sh
# A program that is not there: as a shell says it, 127.
. "$ROOT/tests/lib.sh"

for tier in patch trap; do
	run="$MVE run --tier=$tier -n $MVE_SESSION --"
	refused 127 "/none/such: \(not found\|no such\)" $run /none/such
	refused 127 "-anywhere: not found" $run no-such-program-anywhere
	refused 127 "./none: \(not found\|no such\)" $run ./none
done
refused 127 "" "$MVE" run -n "$MVE_SESSION" -- ""
