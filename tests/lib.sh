# What the scripts of tests/bad-input (and others that want it) share; sourced.
# tests/run starts each in a scratch directory, with MVE (the binary),
# MVE_SESSION (a session name of its own), XDG_RUNTIME_DIR (a folder of its
# own), XDG_STATE_HOME likewise, TESTS (build/tests) and ROOT set.

: "${ROOT:=$(cd "$(dirname "$0")/../.." && pwd)}"
: "${MVE:=$ROOT/build/mve}" "${TESTS:=$ROOT/build/tests}"
: "${MVE_SESSION:=t-$$}"
if [ -z "$XDG_RUNTIME_DIR" ]; then
	XDG_RUNTIME_DIR=$(mktemp -d /tmp/mve-script-XXXXXX)
fi
: "${XDG_STATE_HOME:=$XDG_RUNTIME_DIR/state}"
export ROOT MVE TESTS MVE_SESSION XDG_RUNTIME_DIR XDG_STATE_HOME

fail()
{
	echo "$0: $*" >&2
	exit 1
}

skip()
{
	echo "$*"
	exit 77
}

[ -x "$MVE" ] || skip "no build/mve"

# refused CODE TEXT COMMAND...: the command ends with CODE (several: 126|127),
# prints nothing on its output, and on its error stream exactly two lines,
# "mve: ..." which contains TEXT, and "hint: ..."; it leaves no session and no
# process.
refused()
{
	code=$1 text=$2
	shift 2
	timeout 20 "$@" >out 2>err </dev/null
	status=$?
	case "|$code|" in
	*"|$status|"*) ;;
	*) fail "$*: status $status, expected $code: $(cat err)" ;;
	esac
	[ ! -s out ] || fail "$*: printed on standard output: $(head -3 out)"
	[ "$(wc -l <err)" = 2 ] || fail "$*: not two lines: $(cat err)"
	sed -n 1p err | grep -q "^mve: ." || fail "$*: first line: $(sed -n 1p err)"
	sed -n 1p err | grep -qi -- "$text" || fail "$*: no \"$text\" in: $(sed -n 1p err)"
	sed -n 2p err | grep -q "^hint: ." || fail "$*: second line: $(sed -n 2p err)"
	# Looking for processes takes as long as there are others: once, where many are refused.
	[ -n "${many_refused:-}" ] || clean
}

# Nothing left behind: no session folder, no process of this test.
clean()
{
	if [ -d "$XDG_RUNTIME_DIR/mve" ]; then
		left=$(ls -A "$XDG_RUNTIME_DIR/mve")
		[ -z "$left" ] || fail "left behind: $left"
	fi
	for i in 1 2 3 4 5 6 7 8 9 10; do
		pgrep -f -- "-n $MVE_SESSION" >/dev/null || return 0
		sleep 0.1
	done
	fail "still running: $(pgrep -af -- "-n $MVE_SESSION")"
}

# within SECONDS COMMAND...: tries until it succeeds.
within()
{
	tries=$(($1 * 20))
	shift
	while [ $tries -gt 0 ]; do
		"$@" >/dev/null 2>&1 && return 0
		tries=$((tries - 1))
		sleep 0.05
	done
	return 1
}
