#!/bin/sh
# A session folder that cannot be made: 3, and nothing is started.
. "$ROOT/tests/lib.sh"

refused_here()
{
	XDG_RUNTIME_DIR=$1 refused 3 "$2" "$MVE" run -n "$MVE_SESSION" -- \
		touch "$PWD/started"
}

# A file in its place.
mkdir occupied
: >occupied/mve
refused_here "$PWD/occupied" ""
[ ! -e started ] || fail "the program was started"

# No such folder, and one that is a file.
: >file
refused_here "$PWD/file" ""

# One that may not be written, by somebody who is not root.
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	cp "$MVE" mve
	chmod 755 mve .
	mkdir locked
	chmod 555 locked
	chmod 777 .
	: >out; : >err
	chmod 666 out err
	XDG_RUNTIME_DIR=$PWD/locked refused 3 "ermission" \
		setpriv --reuid=65534 --regid=65534 --clear-groups \
		./mve run -n "$MVE_SESSION" -- touch "$PWD/started"
fi
[ ! -e started ] || fail "the program was started"

# Somebody else's folder: mve must not trust it.
if [ "$(id -u)" = 0 ]; then
	mkdir -p foreign/mve
	chown -R nobody foreign/mve
	chmod 777 foreign/mve
	refused_here "$PWD/foreign" "$PWD/foreign/mve: it belongs to another user"
fi
[ ! -e started ] || fail "the program was started"

# One whose path has no room for a session's name.
long=$PWD/$(printf 'a%.0s' $(seq 1 230))
for command in "run -n $(printf 'n%.0s' $(seq 1 64)) -- /bin/true" \
	"status $(printf 'n%.0s' $(seq 1 64))"; do
	XDG_RUNTIME_DIR=$long refused 3 "too long" "$MVE" $command
done
