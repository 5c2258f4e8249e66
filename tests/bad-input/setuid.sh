#!/bin/sh
# A setuid program, started by somebody who is not root: it would run without
# its rights, so mve says no.
. "$ROOT/tests/lib.sh"

[ "$(id -u)" = 0 ] || skip "needs root, to make a setuid file"
command -v setpriv >/dev/null || skip "needs setpriv"
cp /bin/true suid
chmod 4755 suid
cp "$MVE" mve
chmod 755 mve
chmod 777 .
chown -R nobody "$XDG_RUNTIME_DIR"
grep -q " $(stat -c %m .) .*nosuid" /proc/mounts && skip "this folder is nosuid"
: >out
: >err
chmod 666 out err
refused 126 "setuid" setpriv --reuid=65534 --regid=65534 --clear-groups \
	./mve run -n "$MVE_SESSION" -- ./suid
