#!/bin/sh
# Session names: refused when they cannot be a file's name, or are in use.
. "$ROOT/tests/lib.sh"

long=$(printf '%0300d' 0)
for name in "" a/b /a .. . "a b
c" "$long" -x; do
	refused 2 "name" "$MVE" run -n "$name" -- /bin/true
done

"$MVE" run -n "$MVE_SESSION" -- sleep 30 &
first=$!
within 30 sh -c "'$MVE' ps | grep -q '$MVE_SESSION'" || fail "the first never came up"
"$MVE" run -n "$MVE_SESSION" -- /bin/true >out 2>err
status=$?
[ $status = 2 ] || [ $status = 3 ] || fail "name in use: status $status"
[ "$(wc -l <err)" = 2 ] || fail "name in use: not two lines: $(cat err)"
grep -q "^mve: .*in use" err || fail "name in use: $(cat err)"
grep -q "^hint: ." err || fail "name in use: no hint"
"$MVE" ps | grep -q "$MVE_SESSION" || fail "the first session is gone"
kill $first
wait $first
clean

# The name is free again.
"$MVE" run -n "$MVE_SESSION" -- /bin/true || fail "the name stays in use"
clean
