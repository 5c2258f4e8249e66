#!/bin/sh
# Without root everything but eBPF works: the main job as nobody.
. "$ROOT/tests/lib.sh"

[ "$(id -u)" = 0 ] || skip "needs root, to become nobody"
command -v setpriv >/dev/null || skip "needs setpriv"
cp "$MVE" mve
cp "$TESTS/fork" "$TESTS/jit" "$TESTS/threads" .
chmod 755 mve fork jit threads
chmod 777 .
chown -R nobody "$XDG_RUNTIME_DIR"
for tier in patch trap; do
	for program in fork jit threads; do
		timeout 50 setpriv --reuid=65534 --regid=65534 --clear-groups \
			./mve run --tier=$tier -n "$MVE_SESSION" -- \
			"$PWD/$program" >out 2>err ||
			fail "$program, tier $tier: status $?: $(cat err)"
		grep -qx "$program: ok" out || fail "$program: no success line"
		clean
	done
done
