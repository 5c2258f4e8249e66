#!/bin/sh
# ring.sh [long]: checks the model of the ring, ring.pml, with spin.
#
# A row is a check: the fault that is planted (its error must be found, so that
# the model is known to be able to fail; 0: none, and no error), and the sizes:
# lanes, chunks, followers, lives of each thread, events of each lane's life, and
# whether follower 0 is dropped.  All orders of steps are tried; a search that was
# cut short has failed.
here=$(cd "$(dirname "$0")" && pwd)
gcc='gcc -w -O0 -DSAFETY'
rows='
0 1 2 2 2,0 6,0 1
0 1 2 1 2,2 1,0 1
0 2 3 1 1,1 3,3 0
0 2 3 1 1,1 5,1 0
1 1 2 2 2,0 6,0 1
2 1 2 1 2,2 1,0 1
5 2 3 1 1,1 3,3 0
6 2 3 1 1,1 5,1 0
'
[ "$1" = long ] && gcc='gcc -w -O2 -DSAFETY -DCOLLAPSE -DMEMLIM=6000' && rows='
0 1 2 2 2,2 3,0 1
0 2 3 1 1,1 5,3 1
0 2 3 1 2,1 3,5 0
3 2 3 1 2,1 3,5 0
4 1 2 2 2,0 6,0 1
7 1 2 2 2,0 6,0 1
8 1 2 2 2,0 6,0 1
9 1 2 2 2,0 6,0 1
'

fail()
{
	echo "ring_model: $*" >&2
	exit 1
}

# check FAULT LANES CHUNKS FOLLOWERS LIVES,LIVES EVENTS,EVENTS DROP
check()
{
	name="fault $1, sizes $2 $3 $4 $5 $6 $7"
	mkdir "$*" && cd "$*" || exit 1
	spin -DFAULT="$1" -DLANES="$2" -DCHUNKS="$3" -DFOLLOWERS="$4" -DLIVES_0="${5%,*}" \
		-DLIVES_1="${5#*,}" -DEVENTS_0="${6%,*}" -DEVENTS_1="${6#*,}" -DDROP="$7" \
		-a "$here/ring.pml" >out 2>&1 || fail "$name: $(cat out)"
	$gcc -o pan pan.c || fail "$name: gcc"
	timeout 900 ./pan -m100000 >out 2>&1
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

# check_all COLUMN: every second row, so that two go on at a time.
check_all()
{
	echo "$rows" | sed '/^$/d' | sed -n "$1~2p" | while read -r row; do
		# shellcheck disable=SC2086 # a row is words
		(check $row) || exit 1
	done
}

check_all 1 &
check_all 2 || exit 1
wait $! || exit 1
echo "ring_model: ok"
