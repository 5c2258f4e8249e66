#!/bin/sh
# built.sh SOURCE ARGUMENTS...: builds tests/checkpoint/SOURCE.c with mve-cc, or SOURCE.cc with
# mve-c++, in the ways that
# BUILDS names (a line of flags each), and runs each with the arguments. The last line of all
# must be "...: ok".
set -eu
cc=$ROOT/build/checkpoint/mve-cc
[ -x "$cc" ] || { echo "mve-cc is not built"; exit 77; }
source=$1 from=$ROOT/tests/checkpoint/$1.c
shift
[ -e "$from" ] || from=${from}c cc=${cc%cc}c++
echo "${BUILDS--O2}" | while read -r flags; do
	"$cc" -g -Wall -Wextra -Werror $flags "$from" -o "./$source" ||
		{ echo "does not build with $flags"; exit 1; }
	"./$source" "$@" >out 2>err || {
		[ $? != 77 ] || { cat out; exit 77; }
		echo "built with $flags:"; cat out err; exit 1
	}
	! grep -q 'taken back' out || { echo "built with $flags: it was said"; exit 1; }
	tail -1 out | grep -q ': ok$' && continue
	echo "built with $flags, left early:"
	cat out err
	exit 1
done
echo "$source: ok"
