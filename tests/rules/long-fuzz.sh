#!/bin/sh
# Fuzzes the compiler for FUZZ_SECONDS (600): no crash, hang or leak; then the C
# of every input that was accepted is compiled, without a warning in what is ours.
. "$ROOT/tests/rules/lib.sh"

command -v clang-19 >/dev/null || { echo "needs clang-19"; exit 77; }
clang-19 -fsanitize=fuzzer-no-link -x c -c /dev/null -o null.o 2>/dev/null ||
	{ echo "needs libclang-rt-19-dev"; exit 77; }

cd "$ROOT" || exit 1
sources=$(ls rulec/*/*.c)
clang-19 -std=gnu17 -O1 -g -fsanitize=fuzzer,address,undefined \
	-fno-sanitize-recover=undefined -D_GNU_SOURCE -I. -Ibuild -Ibuild/grammar \
	-Wno-everything tests/fuzz/rules.c $sources build/grammar/rules.tab.c \
	build/grammar/rules.lex.c rulec/emit/header.S engine/core/table.c engine/core/rules.c engine/outside/print/xlat.c \
	-o "$OLDPWD/fuzz" || fail "cannot build the fuzzer"
cd "$OLDPWD" || exit 1

mkdir -p corpus seeds
cp "$RULES"/*.rules "$RULES"/bad/*.rules "$ROOT"/rules/*/*.rules seeds/
cp "$ROOT"/tests/fuzz/corpus/* seeds/ 2>/dev/null
awk '/^```rules/ { n++; next } /^```/ { n += !!(n % 1) ; f = 0 } { print > "seeds/grammar" n }' \
	"$ROOT/grammar/GRAMMAR.md"
./fuzz -max_total_time="${FUZZ_SECONDS:-600}" -timeout=10 -rss_limit_mb=2048 \
	-dict="$ROOT/tests/fuzz/rules.dict" corpus seeds >fuzz.log 2>&1 ||
	fail "$(tail -40 fuzz.log)"
grep -E "DONE|stat::" fuzz.log

# The checker accepted it, so it compiles, but for what is wrong in its own C.
accepted=0
for file in corpus/* seeds/*; do
	timeout 20 "$RULEC" check "$file" >/dev/null 2>&1 || continue
	accepted=$((accepted + 1))
	[ $accepted -le "${FUZZ_COMPILE:-400}" ] || break
	timeout 60 "$RULEC" build "$file" -o one.so >/dev/null 2>err && continue
	grep -q "^$file:.*: error:" err && continue
	grep -qE "^(<stdin>|rules|rulec):" err && fail "$file: $(head -5 err)"
done
echo "accepted: $accepted"
[ $accepted -gt 10 ] || fail "too few inputs are accepted: $accepted"
