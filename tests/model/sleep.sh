#!/bin/sh
# sleep.sh: checks the model of sleeping for a lane, sleep.pml, with spin.
#
# A row is a check: the fault that is planted (its error must be found, so that the model is
# known to be able to fail; 0: none, and no error), followers and events.  All orders of steps
# are tried; a search that was cut short has failed.
here=$(cd "$(dirname "$0")" && pwd)
rows='
0 1 4
0 2 3
1 1 1
2 1 1
3 1 2
4 2 3
5 1 1
6 1 4
7 1 2
'

fail()
{
	echo "sleep_model: $*" >&2
	exit 1
}

# check FAULT FOLLOWERS EVENTS
check()
{
	name="fault $1, sizes $2 $3"
	mkdir "$*" && cd "$*" || exit 1
	spin -DFAULT="$1" -DFOLLOWERS="$2" -DEVENTS="$3" -a "$here/sleep.pml" >out 2>&1 ||
		fail "$name: $(cat out)"
	gcc -w -O1 -DSAFETY -o pan pan.c || fail "$name: gcc"
	timeout 300 ./pan -m100000 >out 2>&1
	errors=$(sed -n 's/^State-vector.*errors: //p' out)
	states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' out)
	case "$1:$errors" in
	0:0) ! grep -q "not completed\|too small\|reached -DMEMLIM" out || fail "$name: $(cat out)" ;;
	0:*) fail "$name: $(grep '^pan:' out)" ;;
	*:1) grep -q "assertion violated\|invalid end state" out || fail "$name: $(cat out)" ;;
	*) fail "$name: not found" ;;
	esac
	[ "${states:-0}" != 0 ] || fail "$name: no states"
	echo "$name: $states states, $errors errors"
}

echo "$rows" | sed '/^$/d' | while read -r row; do
	# shellcheck disable=SC2086 # a row is words
	(check $row) || exit 1
done || exit 1
echo "sleep_model: ok"
