#!/bin/sh
# Every rules file of the tree: its tests pass, its object is the same twice and
# needs neither a linker nor a library, its C is without a warning, and fmt changes
# nothing the second time.
. "$ROOT/tests/rules/lib.sh"

n=0
for file in "$RULES"/*.rules "$ROOT"/rules/*/*.rules; do
	name=$(basename "$file" .rules)
	expect 0 "$RULEC" check "$file"
	expect 0 "$RULEC" build "$file" -o one.so
	expect 0 "$RULEC" build "$file" -o two.so
	cmp one.so two.so || fail "$name: two builds differ"
	readelf -rW one.so | grep -q R_X86_64 && fail "$name: has relocations"
	readelf --dyn-syms -W one.so | grep UND | grep -qv '0: 0000' && fail "$name: undefined symbols"
	objdump -d --no-show-raw-insn one.so | grep -qE '%([xyz]mm|mm[0-7]|st\b)|\bsyscall\b' &&
		fail "$name: a vector register, or a call of its own"
	expect 0 "$RULEC" build "$file" -o one.c
	expect 0 "$RULEC" build "$file" -o two.c
	cmp one.c two.c || fail "$name: two runs differ"
	expect 0 gcc -std=gnu17 -Wall -Wextra -Werror -fsyntax-only one.c \
		-iquote "$(dirname "$file")" -iquote "$ROOT/rules/lib"
	# Formatted twice it is the same, and means the same.
	expect 0 "$RULEC" fmt "$file"
	mv out "$name.rules"
	expect 0 "$RULEC" fmt "$name.rules"
	cmp out "$name.rules" || fail "$name: fmt of fmt differs"
	cp "$(dirname "$file")"/*.h . 2>/dev/null
	cp -n "$(dirname "$file")"/*.rules .	# what it uses
	if [ -f "${file%.rules}.t" ]; then
		expect 0 "$RULEC" test "$file"
		cp "${file%.rules}.t" "$name.t"
		expect 0 "$RULEC" test "$name.rules"
		grep -q "^[1-9][0-9]* passed, 0 failed" out || fail "$name: $(cat out)"
		n=$((n + 1))
	fi
	rm -f ./*.rules
done
[ $n -ge 3 ] || fail "only $n files have tests"
# What the fuzzer has found: fmt of fmt was another, or is now refused.
for file in "$ROOT"/tests/fuzz/corpus/*; do
	"$RULEC" fmt "$file" >one.rules 2>err || { grep -q "error: " err && continue; }
	[ -s one.rules ] || fail "$file: $(cat err)"
	expect 0 "$RULEC" fmt one.rules
	cmp out one.rules || fail "$file: fmt of fmt differs"
done
# What is shipped is written as fmt writes it.
for file in "$ROOT"/rules/*/*.rules; do
	"$RULEC" fmt "$file" | cmp - "$file" || fail "$file is not formatted"
done
clean
