# What the scripts of tests/rules share; sourced. tests/run starts each in a
# scratch directory with ROOT set.

: "${ROOT:=$(cd "$(dirname "$0")/../.." && pwd)}"
RULEC=${RULEC:-$ROOT/build/rulec}
RULES=$ROOT/tests/rules

fail()
{
	echo "$0: $*" >&2
	exit 1
}

[ -x "$RULEC" ] || { echo "no build/rulec"; exit 77; }

# expect STATUS COMMAND...: runs it with the output in out and err.
expect()
{
	wanted=$1
	shift
	timeout 60 "$@" >out 2>err </dev/null
	status=$?
	[ $status = "$wanted" ] || fail "$*: status $status, expected $wanted: $(cat err)"
}

# Nothing that a run of rulec leaves in its folder for temporary files.
export TMPDIR=$PWD/tmp
mkdir -p tmp
clean()
{
	[ -z "$(ls -A tmp)" ] || fail "left behind: $(ls -A tmp)"
}
