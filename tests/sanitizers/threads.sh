#!/bin/sh
# Threads, locks, signals and forks, native and followed by each sanitizer's build.
. "$ROOT/tests/sanitizers/lib.sh"
need gcc python3
flags="$flags -w"

run_through()
{
	follow
	eval '"$MVE" run -n "$name" --when-full block --status status.json' "$follow" \
		'-- ./native >out 2>err' || trouble "$program with $with: $(cat out err)"
	cmp -s out expected || fail "$program with $with: $(cat out)"
	python3 "$ROOT/tests/sanitizers/ended.py" status.json "$followers" ||
		fail "$program with $with: $(cat err)"
}

for program in programs/sanitized programs/locks sanitizers/handlers; do
	build_all "$ROOT/tests/$program.c"
	./native >expected
	alone_and_together run_through
done
echo "threads: ok"
