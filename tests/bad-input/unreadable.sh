#!/bin/sh
# A program that may be executed and not read, of a user who is not root: the kernel hides its
# process, too.  mve says no; one that a server starts runs, unheld and counted.
. "$ROOT/tests/lib.sh"

[ "$(id -u)" = 0 ] || skip "needs root, to become nobody"
command -v setpriv >/dev/null || skip "needs setpriv"
printf '#include <stdio.h>\nint main(void) { puts("ran"); return 7; }\n' >closed.c
gcc closed.c -o closed || fail "gcc"
chmod 711 closed
cp "$MVE" mve
chmod 755 mve
chmod 777 .
chown -R nobody "$XDG_RUNTIME_DIR"
user="setpriv --reuid=65534 --regid=65534 --clear-groups"
: >out
: >err
for with in "" "-f same"; do
	# shellcheck disable=SC2086
	refused 126 "./closed: .*not read" $user ./mve run $with -n "$MVE_SESSION" -- ./closed
done
refused 126 "./closed: .*not read" $user ./mve trace -n "$MVE_SESSION" -- ./closed
refused 126 "./closed: .*not read" $user ./mve run -n "$MVE_SESSION" -f ./closed -- /bin/true

$user ./mve run -n "$MVE_SESSION" --status "$PWD/status" -- sh -c './closed; exit $?' >out 2>err
[ $? = 7 ] && [ "$(cat out)" = ran ] || fail "as a child: $(cat out err)"
grep -q '"unheld": 1' status || fail "not counted: $(grep unheld status)"
clean

# Root may look into it.
chown -R root "$XDG_RUNTIME_DIR"
"$MVE" run -n "$MVE_SESSION" -- ./closed >out 2>err
[ $? = 7 ] && [ "$(cat out)" = ran ] && [ ! -s err ] || fail "root: $(cat out err)"
