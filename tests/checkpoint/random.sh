#!/bin/sh
# random.sh ROUNDS: random.c alone, nested, with threads, and both; in many ways of building.
set -eu
rounds=$1
ways="-O2
-O0
-O3 -march=native
-O2 -mve-no-stack -mve-no-dominated -mve-no-joined -mve-no-loops -mve-no-editions
-O2 -mve-no-editions
-O2 -mve-no-joined"
for how in "0 1" "0 4" "2 1" "3 4"; do
	BUILDS=${BUILDS-$ways} "$ROOT/tests/checkpoint/built.sh" random "$rounds" $how >>all ||
		{ cat all; exit 1; }
done
tail -1 all
