# What the scripts of tests/servers share; sourced.  A script says what it
# needs, defines a function that starts a server, uses it and ends it, and hands
# the function to in_each_mode: it runs natively, in tier patch and in tier trap,
# each in a folder of its own, and must print the same each time.  With
# more_modes=follow it runs once more as the leader of one follower, with
# $follower_options.  A script that is told `record` runs natively and recorded
# instead, and each recording is replayed twice: equal to its end.
#
# The function runs in a subshell with $mode, $name (the session's), $port (a
# free one) and $folder (its own, current) set.  What it prints is compared:
# ports, pids and times do not belong there.  Whatever it starts by `start` or
# `left` is ended for it, and nothing but that.

. "$ROOT/tests/lib.sh"

here=$ROOT/tests/servers
PATH=$PATH:/usr/sbin:/sbin
TRAP_SHARE_MAX=0.001	# of the calls of a server that does its work
export LC_ALL=C
only=${1:-}

need()
{
	for program in "$@"; do
		command -v "$program" >/dev/null || skip "needs $program"
	done
}

free_port()
{
	python3 "$here/free_port.py"
}

# under COMMAND...: the words that run it in this mode, the session's name in.
# exec: the shell's process becomes it, so that $! is the server or its mve.
under()
{
	if [ "$mode" = native ]; then
		exec "$@"
	fi
	if [ "$mode" = follow ]; then
		exec "$MVE" run -f same $follower_options --when-full block -n "$name" -- "$@"
	fi
	if [ "$mode" = record ]; then
		recording=$(mktemp -d "$folder/recording.XXXXXX")
		exec "$MVE" run --record "$recording" --ring 4M --when-full block -n "$name" -- "$@"
	fi
	exec "$MVE" run --tier="$mode" -n "$name" -- "$@"
}

# replay RECORDING: twice, with $replay_options, which must go the same way, and be equal to its end.
replay()
{
	for turn in 1 2; do
		# shellcheck disable=SC2086 # words
		"$MVE" replay -n "$name" $replay_options "$1" >"$folder/replay.$turn" 2>"$folder/replay.err" || {
			status=$?
			cat "$folder/replay.err" >&2
			"$MVE" report "$name" >&2
			echo "replay $turn of $1: $status" >&2
			return 1
		}
	done
	cmp "$folder/replay.1" "$folder/replay.2" >&2 &&
		grep '^replayed [1-9][0-9]* calls, equal$' "$folder/replay.1"
}

# replayed: each recording of the mode; what they said is for who looks.
replayed()
{
	for recording in "$folder"/recording.*; do
		said=$(replay "$recording") || fail "it does not replay"
		echo "$said, $(du -sm "$recording" | cut -f1) MB" >>"$folder/replays"
	done
}

# start COMMAND...: in the background; $server is the process to signal, and
# to wait for.  Its streams go to server.log.
start()
{
	# $folder/started names every process that cleaning must end.
	( under "$@" ) >>server.log 2>&1 </dev/null &
	server=$!
	echo $server >>"$folder/started"
}

# left PID...: ends it in the end; for daemons, helpers and backends.
left()
{
	for one in "$@"; do
		echo "$one" >>"$folder/started"
	done
}

# finish [SIGNAL]: ends the server and prints how it ended.
finish()
{
	kill -"${1:-TERM}" "$server"
	finished
}

finished()
{
	within 15 gone "$server" || fail "$mode: the server does not end"
	wait "$server"
	echo "server ended: $?"
}

# gone PID: it has ended, reaped or not.
gone()
{
	! kill -0 "$1" || grep -q '^State:.Z' "/proc/$1/status"
}

# listens PORT: someone does, on any address.
listens()
{
	grep -qi ":$(printf %04X "$1") [0-9A-F]*:0000 0A" /proc/net/tcp /proc/net/tcp6
}

up()
{
	within 15 listens "${1:-$port}" || fail "$mode: no listener on ${1:-$port}"
}

# The session's server as the kernel knows it: mve's child, or the process.
server_pid()
{
	if [ "$mode" = native ]; then
		echo "$server"
	else
		"$MVE" status "$name" --json | python3 "$here/status.py" server
	fi
}

# held_all: the session is there, and in tier patch the net caught next to
# nothing of what was done since `held_from` (or since the start).
held_from()
{
	[ "$mode" != patch ] || "$MVE" status "$name" --json >"$folder/from.json"
}

held_all()
{
	[ "$mode" != native ] || return 0
	if [ "$mode" = follow ]; then
		within 10 followed || fail "follow: $(followed)"
		return 0
	fi
	"$MVE" ps | grep "^$name " | grep -q running ||
		fail "$mode: mve ps does not show $name: $("$MVE" ps)"
	[ "$mode" != record ] || return 0
	"$MVE" status "$name" --json >"$folder/status.json" || fail "$mode: no status"
	python3 "$here/status.py" check "$mode" "$TRAP_SHARE_MAX" "$folder" ||
		fail "$mode: see $folder/status.json"
}

# followed: the session's follower is alive, and has come to where the leader is.
followed()
{
	"$MVE" status "$name" --json >"$folder/status.json" &&
		python3 "$ROOT/tests/follow/steady.py" "$folder/status.json" 1
}

# ended: the session has gone, its folder too.
session_ended()
{
	[ "$mode" != native ] || return 0
	within 30 sh -c "! [ -e '$XDG_RUNTIME_DIR/mve/$name' ]" ||
		fail "$mode: the session stays: $("$MVE" ps)"
}

end_rest()
{
	[ -f "$folder/started" ] || return 0
	[ "$mode" = native ] || "$MVE" stop "$name" --kill >/dev/null 2>&1
	while read -r one; do
		kill -KILL "$one" 2>/dev/null
	done <"$folder/started"
}

in_mode()
{
	mode=$1 name=$MVE_SESSION-$1 folder=$top/$1
	mkdir "$folder" && chmod 755 "$folder" && cd "$folder" || exit 1
	port=$(free_port)
	trap end_rest EXIT
	trap 'exit 1' HUP INT TERM
	shift
	"$@" || fail "$mode: status $?"
	session_ended
	[ "$mode" != record ] || replayed
}

in_each_mode()
{
	top=$PWD
	modes="${MVE_TIER:-patch trap} $more_modes"
	[ -z "$only" ] || modes=$only
	for mode in native $modes; do
		( in_mode "$mode" "$@" ) >"out.$mode" 2>"err.$mode"
		status=$?
		if [ $status = 77 ]; then
			skip "$(tail -1 "out.$mode")"
		elif [ $status != 0 ]; then
			cat "err.$mode" >&2
			tail -5 "$mode/server.log" >&2
			fail "$mode: failed with $status, after: $(tail -5 "out.$mode")"
		elif ! cmp -s out.native "out.$mode"; then
			diff out.native "out.$mode" >&2
			fail "$mode: differs from native"
		fi
	done
	[ ! -f "$top/record/replays" ] || cat "$top/record/replays"
	echo "$(basename "$0" .sh): ok"
}

# --- for the long ones ------------------------------------------------------------

sources=$ROOT/build/sources

apt()	# apt-get with lists of its own: the system's stay as they are
{
	apt-get -q -o Dir::Etc::sourcelist="$sources/list" -o Dir::Etc::sourceparts=- \
		-o Dir::State::Lists="$sources/lists" -o Dir::Cache="$sources/cache" \
		-o APT::Sandbox::User=root "$@" >>"$sources/log" 2>&1
}

apt_ready()
{
	[ -e "$sources/list" ] && return
	mkdir -p "$sources/lists/partial" "$sources/cache/archives/partial"
	for suite in bookworm bookworm-updates; do
		echo "deb-src http://deb.debian.org/debian $suite main"
		echo "deb http://deb.debian.org/debian $suite main"
	done >"$sources/list.new"
	for kind in deb deb-src; do
		echo "$kind http://deb.debian.org/debian-security bookworm-security main"
	done >>"$sources/list.new"
	mv "$sources/list.new" "$sources/list"
	apt update
}

# debian_source PACKAGE[=VERSION] FOLDER: unpacks it in $sources/FOLDER, once.
debian_source()
{
	[ -d "$sources/$2" ] && return
	need apt-get dpkg-source
	apt_ready
	( cd "$sources" && apt --only-source source "$1" ) && [ -d "$sources/$2" ] ||
		skip "cannot have Debian's source of $1"
}

# debian_library PACKAGE...: unpacks what is in them below $sources/root.
debian_library()
{
	need apt-get dpkg
	apt_ready
	mkdir -p "$sources/debs"
	for package in "$@"; do
		ls "$sources/debs/${package}"_* >/dev/null 2>&1 ||
			( cd "$sources/debs" && apt download "$package" ) || skip "cannot have $package"
		dpkg -x "$sources/debs/${package}"_*.deb "$sources/root"
	done
}
