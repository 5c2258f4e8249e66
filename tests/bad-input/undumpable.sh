#!/bin/sh
# A server that is not dumpable, of a user who is not root: mve may not look into it.  It
# runs, ends when it is stopped, and its programs run once; a takeover is refused.
. "$ROOT/tests/lib.sh"

[ "$(id -u)" = 0 ] || skip "needs root, to become nobody"
command -v setpriv >/dev/null || skip "needs setpriv"
cp "$MVE" mve
cp "$TESTS/undumpable" .
chmod 755 mve undumpable
chmod 777 .
chown -R nobody "$XDG_RUNTIME_DIR"

user() {
	timeout 30 setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
}

# Whether it serves; then it is stopped, and nobody is left.
ready() {
	for _ in $(seq 200); do
		[ -e ready ] && return
		sleep 0.05
	done
	fail "$1: it does not come up: $(cat err)"
}

stopped() {
	user ./mve stop "$MVE_SESSION" >out.stop 2>&1 || fail "$1: stop: $(cat out.stop)"
	wait
	[ "$(grep -cx once out)" = 1 ] || fail "$1: its program ran other than once: $(cat out)"
	grep -qx "undumpable: ok" out || fail "$1: it did not come to its end: $(cat err)"
	clean
	rm -f ready
}

for with in "" "-f same"; do
	# shellcheck disable=SC2086
	user ./mve run $with -n "$MVE_SESSION" -- ./undumpable ready >out 2>err &
	ready "run $with"
	grep -q "not dumpable" err || fail "run $with: not said: $(cat err)"
	if [ "$with" ]; then
		user ./mve promote "$MVE_SESSION" f1 >out.promote 2>&1 &&
			fail "promoted: $(cat out.promote)"
		grep -q "not dumpable" out.promote || fail "promote: $(cat out.promote)"
	fi
	stopped "run $with"
	# shellcheck disable=SC2086
	user ./mve run $with -n "$MVE_SESSION" -- ./undumpable ready daemon >out 2>err
	ready "daemon $with"
	stopped "daemon $with"
done

# One that is on its way out is not taken for such: a follower that is dropped while it asks.
for _ in 1 2 3; do
	: >err			# of the one before, until the next one's shell is there
	user ./mve run -f 'tail -f /etc/passwd' -n "$MVE_SESSION" -- tail -f /dev/null >out 2>err &
	within 20 grep -q "f1: dropped: diverged" err || fail "not dropped: $(cat err)"
	user ./mve stop "$MVE_SESSION" >out.stop 2>&1 || fail "stop: $(cat out.stop)"
	wait
	! grep "not dumpable" err || fail "of one that ends"
	clean
done
