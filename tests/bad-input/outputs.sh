#!/bin/sh
# What cannot be printed or written is said, and no answer; a reader that goes is none.
. "$ROOT/tests/lib.sh"

for command in ps help "run --help" "doctor --json"; do
	"$MVE" $command >/dev/full 2>err
	[ $? = 3 ] || fail "$command on a full disk: not 3"
	grep -q "cannot print: standard output: No space" err || fail "$command: $(cat err)"
	[ "$(wc -l <err)" = 2 ] || fail "$command: not two lines: $(cat err)"
done
"$MVE" help 2>err | true
[ ! -s err ] || fail "a pipe that closes: $(cat err)"

# A command is cut where a terminal ends, and dots say so; a pipe gets the whole of it.
words="a command of many more words than fit into the columns of a terminal"
"$MVE" run -n "$MVE_SESSION" -- sh -c "sleep 20; : $words" &
within 20 sh -c "'$MVE' ps | grep -q '$MVE_SESSION'" || fail "no session"
"$MVE" ps | grep -q "$words\$" || fail "ps in a pipe: $("$MVE" ps)"
if command -v script >/dev/null; then
	script -qec "stty cols 70; '$MVE' ps" /dev/null </dev/null | tr -d '\r' >cut
	grep -q "$MVE_SESSION.*sh -c .*\.\.\.\$" cut || fail "ps on a terminal: $(cat cut)"
	! grep "$words" cut || fail "ps on a terminal: it is not cut"
fi
"$MVE" stop "$MVE_SESSION" || fail "it cannot be stopped"
wait

# The program's own end is that of mve trace; that the trace is not whole is said.
"$MVE" trace -n "$MVE_SESSION" -o /dev/full -- sh -c 'exit 7' >out 2>err
[ $? = 7 ] || fail "trace: $(cat err)"
grep -q "the trace is cut short" err || fail "trace: $(cat err)"
clean

# The status is written when the server ends: what forbids it is said before.
refused 3 "cannot write the status: /none/such: No such file" \
	"$MVE" run -n "$MVE_SESSION" --status /none/such -- touch "$PWD/started"
refused 3 "cannot write the status: $PWD: \(Is a\|is a\) directory" \
	"$MVE" run -n "$MVE_SESSION" --status "$PWD" -- touch "$PWD/started"
[ ! -e started ] || fail "refused, and the program was started"
"$MVE" run -n "$MVE_SESSION" --status status.json -- true || fail "a relative --status"
[ -s status.json ] || fail "no status was written"
