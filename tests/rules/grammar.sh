#!/bin/sh
# Every example in grammar/GRAMMAR.md and docs/rules.md is compiled and run.
. "$ROOT/tests/rules/lib.sh"

# Blocks become 1.rules, 1.t; 2.refused, 2.text; ...
cat >split.awk <<'END'
/^```rules refused$/ { file = ++n ".refused"; next }
/^```rules$/ { file = ++n ".rules"; next }
/^```test$/ { file = n ".t"; next }
/^```text$/ { file = n ".text"; next }
/^```/ { file = ""; next }
file { print > file }
END
echo 'static int64_t log_fd = -1;' >log.h
echo 'static int64_t waits;' >waits.h
cat >twice.h <<'END'
static inline struct view twice(struct rules_run *run, struct view v)
{
	rules_build(run);
	rules_add(run, v);
	rules_add(run, v);
	return rules_built(run);
}
END
cp "$ROOT/rules/kv/kv.h" .

run_examples()
{
	rm -f [0-9]*
	awk -f split.awk "$1"
	for file in [0-9]*.rules; do
		expect 0 "$RULEC" test "$file"
		grep -q "^[1-9][0-9]* passed, 0 failed" out || fail "$1: $file: $(cat out)"
	done
	for file in [0-9]*.refused; do
		[ -e "$file" ] || continue
		expect 1 "$RULEC" check "$file"
		grep -qF "$(cat "${file%.refused}.text")" err || fail "$1: $file: $(cat err)"
	done
	echo "$1: $(ls [0-9]*.rules | wc -l) examples"
}

run_examples "$ROOT/grammar/GRAMMAR.md"
[ "$(ls [0-9]*.rules | wc -l)" -ge 15 ] || fail "too few examples"
[ ! -e "$ROOT/docs/rules.md" ] || run_examples "$ROOT/docs/rules.md"
clean
