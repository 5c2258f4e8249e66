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

# With the rights that the doctor proposes for the audit it is as fit as without.
if command -v setcap >/dev/null && setcap cap_bpf,cap_perfmon+ep mve 2>/dev/null; then
	setpriv --reuid=65534 --regid=65534 --clear-groups ./mve doctor >out 2>&1
	! grep "^MISSING\|pidfd_getfd.*not perm" out || fail "doctor with rights of its own"
fi

# The folders that it may not make are named, with why.
HOME=/none_may_make setpriv --reuid=65534 --regid=65534 --clear-groups env -u XDG_STATE_HOME \
	./mve run -n "$MVE_SESSION" -f /bin/false -- /bin/true >out 2>err
grep -q "^hint: no report could be written: /none_may_make/.local/state: Permission denied" err ||
	fail "no report: $(cat err)"
