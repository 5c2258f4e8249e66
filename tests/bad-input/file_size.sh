#!/bin/sh
# A limit of the file size is the server's: mve goes on under it, or says what is missing,
# and the server has its limit and its signal.
. "$ROOT/tests/lib.sh"

cat >limited.sh <<'END'
ulimit -f
ulimit -H -f
(head -c 100000 /dev/zero >large) 2>/dev/null
echo $?
END

# Root may not everywhere.
may_raise()
{
	(ulimit -f 0 && ulimit -f unlimited) 2>/dev/null
}

for limit in 0 1 200; do
	for soft in "" -S; do
		(ulimit $soft -f $limit; exec sh limited.sh) 2>&1 | cat >native
		(
			ulimit $soft -f $limit
			exec timeout 60 "$MVE" run -n "$MVE_SESSION" -- sh limited.sh
		) 2>&1 | cat >held
		# Who cannot raise it may have no room for the areas, which is said.
		cmp -s native held || { ! may_raise && grep -q "ulimit -f" held; } ||
			fail "limit $soft $limit: $(cat held); natively $(cat native)"
		clean
	done
done

# As another user, who cannot raise it: no signal ends mve; it says why it does not begin.
[ "$(id -u)" = 0 ] && command -v setpriv >/dev/null || exit 0
cp "$MVE" mve
chmod 755 mve .
chown -R 65534 "$XDG_RUNTIME_DIR"
(
	ulimit -f 0
	setpriv --reuid=65534 --regid=65534 --clear-groups ./mve run -n "$MVE_SESSION" -- true
	echo "status $?" >&2
) 2>&1 | cat >err
grep -q "status 3" err && grep -q "^mve: cannot begin a session" err || fail "$(cat err)"
for command in ps "status $MVE_SESSION" doctor; do
	(
		ulimit -f 0
		setpriv --reuid=65534 --regid=65534 --clear-groups ./mve $command >/dev/null
		echo "status $?" >&2
	) 2>&1 | cat >err
	grep -q "status [013]$" err || fail "$command: $(cat err)"
done
clean
