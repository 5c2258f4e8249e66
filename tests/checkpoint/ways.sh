#!/bin/sh
# ways.sh ROUNDS: random.c with the ways that ours is compared with.
set -eu
rounds=$1
cc=$ROOT/build/checkpoint/mve-cc
[ -x "$cc" ] || { echo "mve-cc is not built"; exit 77; }
"$cc" -O2 -mve-undo "$ROOT/tests/checkpoint/random.c" -o undo
"$cc" -O2 -mve-no-checks "$ROOT/tests/checkpoint/random.c" -o pages

# way NAME PROGRAM DEPTH [alone]: by a pipe, for with fork it is not the first process that ends it.
way()
{
	MVE_CHECKPOINT_WAY=$1 "./$2" "$rounds" 0 "$3" ${4-} 2>&1 | cat >out
	grep -q '^random: ok$' out || { echo "$1:"; cat out; exit 1; }
}

way undo undo 4 alone
way scan pages 4
GLIBC_TUNABLES=glibc.pthread.rseq=0 way mprotect pages 1
way fork pages 1
! MVE_CHECKPOINT_WAY=none ./pages 1 >out 2>&1 || { echo "a way that there is not"; exit 1; }
grep -q "no such way" out
echo "ways: ok"
