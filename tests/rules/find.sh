#!/bin/sh
# Long lists of rules: of many that begin alike, the one is taken that a search
# through all of them would take (find.py says which that is).
. "$ROOT/tests/rules/lib.sh"
for seed in 1 2 3 4; do
	python3 "$RULES/find.py" $seed >expected || fail "cannot write the rules"
	expect 0 "$RULEC" test many.rules
	grep -q "^$(cat expected) passed, 0 failed" out || fail "seed $seed: $(tail -5 out)"
done
echo "$(cat expected) sequences for each of 4 files"
clean
