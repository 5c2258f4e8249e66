#!/bin/sh
# No source of the inside can name what it has not (engine/inside/poison.h): each is compiled
# with that in front, and each name that stands there ends a compilation.
. "$(dirname "$0")/../lib.sh"

here=$PWD
cd "$ROOT" || exit 1
make -nB V=1 build/inside.elf >"$here/lines" 2>/dev/null
grep -- '-ffreestanding.* -c .*\.c ' "$here/lines" >"$here/inside"
[ "$(wc -l <"$here/inside")" -ge 60 ] || fail "only $(wc -l <"$here/inside") sources are compiled"
! grep -v -- '-include engine/inside/poison.h' "$here/inside" || fail "compiled without it"

names=$(sed -n 's/^#pragma GCC poison //p' engine/inside/poison.h)
[ "$(echo "$names" | wc -w)" -ge 40 ] || fail "only these are poisoned: $names"
for name in $names; do
	echo "int $name;" >"$here/name.c"
	! gcc -ffreestanding -include engine/inside/poison.h -fsyntax-only "$here/name.c" 2>"$here/err" ||
		fail "$name can be named"
	grep -q "attempt to use poisoned" "$here/err" || fail "$name: $(cat "$here/err")"
done
echo "inside_names: ok"
