#!/bin/sh
# The test programs of strace, about 1150: each natively and in both tiers, same
# status and same output.  strace_programs.py names those that may differ.
. "$ROOT/tests/servers/lib.sh"
need gcc make python3

debian_source strace=6.1-0.1 strace-6.1
cd "$sources/strace-6.1" || exit 1
if ! [ -e tests/zeroargc ]; then
	# Part of strace itself does not build with new headers: the tests do.
	./configure --disable-mpers --enable-gcc-Werror=no >conf.log 2>&1
	make -k -j2 >make.log 2>&1
	make -k -j2 -C tests check TESTS= >tests.log 2>&1
fi
[ -e tests/zeroargc ] || fail "strace's tests do not build: $PWD/tests.log"
python3 "$here/strace_programs.py" "$PWD/tests"
status=$?
[ $status = 0 ] && echo "long-strace: ok"
exit $status
