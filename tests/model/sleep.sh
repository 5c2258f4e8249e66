#!/bin/sh
# sleep.sh: checks the models of sleeping, for a lane (sleep.pml) and for room (full.pml), of edges
# and of a tick's number, with spin.
#
# A row is a check: the model, the fault that is planted (its error must be found, so that the
# model is known to be able to fail; 0: none, and no error), and the sizes.  All orders of steps
# are tried; a search that was cut short has failed.
here=$(cd "$(dirname "$0")" && pwd)
rows='
sleep 0 FOLLOWERS=1 EVENTS=4
sleep 0 FOLLOWERS=2 EVENTS=3
sleep 1 FOLLOWERS=1 EVENTS=1
sleep 2 FOLLOWERS=1 EVENTS=1
sleep 3 FOLLOWERS=1 EVENTS=2
sleep 4 FOLLOWERS=2 EVENTS=3
sleep 5 FOLLOWERS=1 EVENTS=1
sleep 6 FOLLOWERS=1 EVENTS=4
sleep 7 FOLLOWERS=1 EVENTS=2
full 0 THREADS=2 NEEDS=2 CHUNKS=4 DROP=0
full 0 THREADS=2 NEEDS=2 CHUNKS=1 DROP=1
full 1 THREADS=1 NEEDS=1 CHUNKS=1 DROP=0
full 2 THREADS=1 NEEDS=1 CHUNKS=1 DROP=0
full 3 THREADS=2 NEEDS=1 CHUNKS=0 DROP=1
edge 0 THREADS=2 CALLS=2
edge 0 THREADS=3 CALLS=1
edge 1 THREADS=3 CALLS=1
edge 2 THREADS=2 CALLS=1
edge 3 THREADS=3 CALLS=1
edge 4 THREADS=2 CALLS=1
edge 5 THREADS=2 CALLS=1
tick 0 TICKS=3 EVENTS=4
tick 1 TICKS=1 EVENTS=1
tick 2 TICKS=1 EVENTS=1
tick 3 TICKS=1 EVENTS=1
'

fail()
{
	echo "sleep_model: $*" >&2
	exit 1
}

# check MODEL FAULT SIZE...
check()
{
	name="$*" model=$1 fault=$2
	shift 2
	mkdir "$name" && cd "$name" || exit 1
	# shellcheck disable=SC2046 # sizes are words
	spin -DFAULT="$fault" $(printf -- '-D%s ' "$@") -a "$here/$model.pml" >out 2>&1 ||
		fail "$name: $(cat out)"
	gcc -w -O1 -DSAFETY -o pan pan.c || fail "$name: gcc"
	timeout 300 ./pan -m100000 >out 2>&1
	errors=$(sed -n 's/^State-vector.*errors: //p' out)
	states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' out)
	case "$fault:$errors" in
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
