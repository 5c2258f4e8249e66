#!/bin/sh
# What programs write, and what they are called, is shown and not obeyed: no control
# character of theirs gets out of mve, by whichever command.
. "$ROOT/tests/lib.sh"

esc=$(printf '\033')
evil=$(printf '\033]0;owned\007\033[31m\302\233\342\200\256\177')
mkdir "$PWD/d$esc[7m"
cp /bin/sleep "$PWD/d$esc[7m/s$evil"

# Only ends of lines and tabs are left of what a terminal would obey.
plain()
{
	[ -s "$1" ] || fail "$1 is empty"
	# JSON has an escape for all but this one, which no terminal obeys.
	case $1 in
	*.json) LC_ALL=C tr -d '\n\t\177' <"$1" >"$1.line" ;;
	*) LC_ALL=C tr -d '\n\t' <"$1" >"$1.line" ;;
	esac
	if LC_ALL=C grep -q "[$(printf '\001-\037\177')]" "$1.line" ||
		LC_ALL=C grep -q "$(printf '\302\233')" "$1.line" ||
		LC_ALL=C grep -q "$(printf '\342\200\256')" "$1.line"; then
		fail "$1: $(LC_ALL=C cat -v "$1" | head -20)"
	fi
}

run()
{
	"$MVE" run -n "$MVE_SESSION" -f "sh -c 'printf \"other $evil\" >out.txt; sleep 100'" -- \
		sh -c "printf 'one $evil' >out.txt; '$PWD/d$esc[7m/s$evil' 100" >run.out 2>run.err &
	pid=$!
	within 20 sh -c "'$MVE' report '$MVE_SESSION' >/dev/null" || fail "no report: $(cat run.err)"
	within 20 grep -q "dropped" run.err || fail "not dropped: $(cat run.err)"
}

run
"$MVE" ps >ps 2>&1
"$MVE" ps --json >ps.json
"$MVE" status "$MVE_SESSION" >status 2>&1 || fail "status: $(cat status)"
"$MVE" status "$MVE_SESSION" --json >status.json
"$MVE" top "$MVE_SESSION" --once >top 2>&1 || fail "top: $(cat top)"
"$MVE" report "$MVE_SESSION" >report 2>&1
"$MVE" report "$MVE_SESSION" --list >list 2>&1
"$MVE" report "$MVE_SESSION" --json >report.json
"$MVE" drop "$MVE_SESSION" "f$evil" >drop 2>&1
"$MVE" promote "$MVE_SESSION" "f$evil" >promote 2>&1
"$MVE" stop "$MVE_SESSION" --kill || fail "stop"
wait $pid
cp "$XDG_STATE_HOME/mve/$MVE_SESSION/report-1.txt" kept
for file in ps ps.json status status.json top report list report.json drop promote run.err kept; do
	plain $file
done
grep -q 'x1b' status || fail "the name is not shown: $(cat -v status)"
python3 -c 'import json, sys
for f in sys.argv[1:]: json.load(open(f))' ps.json status.json report.json || fail "no JSON"

# Errors, and traces.
"$MVE" run -n "$MVE_SESSION" -- "$PWD/none$evil" >out 2>missing
"$MVE" status "$evil" >out 2>nosuch
"$MVE" "$evil" >out 2>command
"$MVE" trace -n "$MVE_SESSION" -o trace -- sh -c "echo '$evil' >'$PWD/new$evil'"
for file in missing nosuch command trace; do
	plain $file
done
clean
