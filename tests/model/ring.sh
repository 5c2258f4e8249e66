#!/bin/sh
# ring.sh [long]: checks the model of the ring, ring.pml, with spin.
#
# A row is a check: what must be found (none, or the error of a planted fault,
# so that the model is known to be able to fail), and the sizes.  All orders of
# steps are tried; a search that was cut short has failed.
here=$(cd "$(dirname "$0")" && pwd)

fail()
{
	echo "ring_model: $*" >&2
	exit 1
}

# check FAULT LANES CHUNKS FOLLOWERS LIVES_0,LIVES_1 EVENTS_0,EVENTS_1 DROP
# Lives are of each thread, the second may have none; events of each lane's life.
check()
{
	sizes="-DLANES=$2 -DCHUNKS=$3 -DFOLLOWERS=$4 -DLIVES_0=${5%,*} -DLIVES_1=${5#*,}"
	sizes="$sizes -DEVENTS_0=${6%,*} -DEVENTS_1=${6#*,} -DDROP=$7"
	name="fault $1, sizes $2 $3 $4 $5 $6 $7"
	# A fault is found soon; its search is not worth the compiler's time.
	case $1 in 0) optimize=-O1 ;; *) optimize=-O0 ;; esac
	mkdir "$*" && cd "$*" || exit 1
	spin -DFAULT="$1" $sizes -a "$here/ring.pml" >out 2>&1 || fail "$name: $(cat out)"
	gcc $optimize -w -DSAFETY -DCOLLAPSE -DMEMLIM=4000 -o pan pan.c || fail "$name: gcc"
	timeout 600 ./pan -m100000 >out 2>&1
	errors=$(sed -n 's/^State-vector.*errors: //p' out)
	states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' out)
	case "$1:$errors" in
	0:0) ! grep -q "not completed\|too small\|memory bound" out || fail "$name: $(cat out)" ;;
	0:*) fail "$name: $(grep '^pan:' out)" ;;
	*:1) grep -q "assertion violated\|invalid end state" out || fail "$name: $(cat out)" ;;
	*) fail "$name: not found" ;;
	esac
	case $states in ''|0) fail "$name: no states" ;; esac
	echo "$name: $states states, $errors errors"
}

rows='
0 1 2 2 2,0 6,0 1
0 1 2 1 2,2 1,0 1
0 2 3 1 1,1 3,3 0
0 2 3 1 1,1 5,1 0
1 1 2 2 2,0 6,0 1
2 1 2 1 2,2 1,0 1
3 2 3 1 2,1 3,5 0
4 1 2 2 2,0 6,0 1
5 2 3 1 1,1 3,3 0
6 2 3 1 1,1 5,1 0
7 1 2 2 2,0 6,0 1
8 1 2 2 2,0 6,0 1
9 1 2 2 2,0 6,0 1
'
[ "$1" != long ] || rows='
0 1 2 2 2,2 3,0 1
0 2 3 1 2,1 3,5 0
0 2 3 1 1,1 5,3 1
'
echo "$rows" | while read -r row; do
	[ -z "$row" ] || (check $row) || exit 1
done || exit 1
echo "ring_model: ok"
