# What the scripts of tests/sanitizers share; sourced.  Sanitizer builds follow a
# native leader: first each alone, then several side by side.

. "$ROOT/tests/follow/lib.sh"
seconds=${1:-2}
flags="-O1 -g -fno-omit-frame-pointer -D_GNU_SOURCE -I$ROOT -pthread"

# COMPILER-SANITIZER[-static]; -static: the runtime within the program, as clang's are.
EDITIONS="gcc-address gcc-address-static gcc-undefined gcc-undefined-static gcc-thread
	gcc-thread-static gcc-leak clang-19-address clang-19-undefined clang-19-memory
	clang-19-thread clang-19-leak"
SIDE_BY_SIDE="gcc-address gcc-thread clang-19-address clang-19-undefined clang-19-memory"

# build OUT NAME SOURCE...: one edition; false if this machine has no such compiler.
build()
{
	out=$1 how=${2%-static} static=$2
	shift 2
	case $static in
	gcc-address-static) static=-static-libasan ;;
	gcc-undefined-static) static=-static-libubsan ;;
	gcc-thread-static) static=-static-libtsan ;;
	*) static= ;;
	esac
	command -v "${how%-*}" >/dev/null || return 1
	# shellcheck disable=SC2086 # words
	"${how%-*}" $flags -fsanitize="${how##*-}" $static "$@" -o "$out" 2>build.log ||
		{ cat build.log >&2; fail "$how does not build"; }
}

# build_all SOURCE...: native and all editions that this machine can make, in $made.
build_all()
{
	made=
	# shellcheck disable=SC2086 # words
	gcc $flags "$@" -o native || fail "native does not build"
	for edition in $EDITIONS; do
		build "$edition" "$edition" "$@" && made="$made $edition"
	done
}

# alone_and_together FUNCTION: with each edition, and with those of SIDE_BY_SIDE.
alone_and_together()
{
	for edition in $made; do
		with=$edition followers=1
		$1
	done
	with=
	for edition in $SIDE_BY_SIDE; do
		[ ! -x "$edition" ] || with="$with $edition"
	done
	# shellcheck disable=SC2086 # words
	followers=$(set -- $with; echo $#)
	$1
}

# follow ARGUMENT...: $follow, the words of -f for each of $with, quoted for the shell.
follow()
{
	follow=
	for edition in $with; do
		follow="$follow -f './$edition $*' --name $edition"
	done
}

# lead ARGUMENT...: of native and its followers; $server is its mve.
lead()
{
	follow "$@"
	eval "launch $follow" '-- ./native "$@"'
}

# The runtimes' own calls are counted, too: only lag and verdicts tell.
distance=100000000
