#!/bin/sh
# Faulty rules: the exact text with its marks, status 1, and never an output.
# UPDATE=1 writes what is said now as what is expected.
. "$ROOT/tests/rules/lib.sh"

cd "$RULES/bad" || fail "no folder bad"
n=0
for file in *.rules; do
	expected=${file%.rules}.txt
	timeout 20 "$RULEC" check "$file" >"$TMPDIR/out" 2>"$TMPDIR/err"
	status=$?
	wanted=1
	[ -f "${file%.rules}.status" ] && wanted=$(cat "${file%.rules}.status")
	[ $status = "$wanted" ] || fail "$file: status $status, expected $wanted: $(cat "$TMPDIR/err")"
	[ -s "$TMPDIR/out" ] && fail "$file: printed on standard output"
	sed "s,$ROOT/,,g; s,build/../,,g" "$TMPDIR/err" >"$TMPDIR/text"
	[ -n "${UPDATE:-}" ] && cp "$TMPDIR/text" "$expected"
	diff -u "$expected" "$TMPDIR/text" || fail "$file: the message differs"
	grep -q '\^' "$expected" || fail "$expected has no mark"
	n=$((n + 1))
	[ "$wanted" = 0 ] && continue
	# An old output stays as it was, and there is no new one, nor a part of one.
	for output in "$TMPDIR/object.so" "$TMPDIR/object.c"; do
		timeout 20 "$RULEC" build "$file" -o "$output" 2>/dev/null && fail "$file: built"
		[ -e "$output" ] && fail "$file: left $output"
		echo old >"$output"
		timeout 20 "$RULEC" build "$file" -o "$output" 2>/dev/null
		[ "$(cat "$output")" = old ] || fail "$file: changed $output"
		rm "$output"
	done
done
[ $n -ge 20 ] || fail "only $n files"
rm -f "$TMPDIR"/out "$TMPDIR"/err "$TMPDIR"/text
[ -z "$(ls -A "$TMPDIR")" ] || fail "left behind: $(ls -A "$TMPDIR")"
