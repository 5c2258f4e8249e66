#!/bin/sh
# Standard streams are the program's: a terminal stays a terminal, a file's
# offset is shared, closed streams stay closed.
. "$ROOT/tests/lib.sh"

run="$MVE run -n $MVE_SESSION --"

printf 'one\ntwo\nthree\n' | $run cat >out || fail "cat: $?"
printf 'one\ntwo\nthree\n' | cmp - out || fail "cat changed its input"

printf 'one\ntwo\n' >file
{ $run head -c 4 >out; cat >rest; } <file
[ "$(cat out)$(cat rest)" = "onetwo" ] || fail "offset: $(cat out rest)"

{ echo first; $run echo second; echo third; } >out
[ "$(tr '\n' ' ' <out)" = "first second third " ] || fail "order: $(cat out)"

$run sh -c 'echo to-out; echo to-err >&2' >out 2>err
[ "$(cat out)" = to-out ] && [ "$(cat err)" = to-err ] || fail "mixed: $(cat out err)"

for closed in '0<&-' '1>&-' '2>&-' '0<&- 1>&- 2>&-'; do
	eval "$run '$TESTS/die' exit 7 $closed" 2>/dev/null
	status=$?
	[ $status = 7 ] || fail "with $closed: status $status"
	clean
done

command -v script >/dev/null || exit 0
script -qec "$run sh -c 'test -t 0 && test -t 1 && test -t 2 && echo all-tty'" \
	/dev/null </dev/null >out 2>&1
grep -q all-tty out || fail "no terminal: $(cat out)"
clean
