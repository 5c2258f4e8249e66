# What the scripts of tests/follow share; sourced.  A script takes SECONDS (how
# long the load lasts) and FOLLOWERS (1), starts a server as a leader with so many
# followers of the same version (`lead`), or of another one (tests/pairs), loads it with
# clients that check each reply, and looks that nobody was dropped (`steady`) and all is
# gone in the end (`leave`).  A small ring holds the leader up when it is full: clients, leader and
# followers share few processors here, and lag is another test's matter.  Ports are free ones, on loopback; nothing is ended but by its pid.

. "$ROOT/tests/servers/lib.sh"

# FOLLOWERS is `record`: nobody follows, the server is recorded, and replayed in the end, twice;
# what would have followed (an ASan build, say) has its turn then, too.

load=$ROOT/tests/follow
mode=patch name=$MVE_SESSION folder=$PWD
seconds=${1:-7} followers=${2:-1}
recording=
if [ "$followers" = record ]; then
	recording=$folder/recording followers=0
	ring=4M		# a recorded server maps eight; vsftpd may have 200 MB
fi
chmod 755 .
port=$(free_port)
trap end_rest EXIT
trap 'exit 1' HUP INT TERM

# lead COMMAND ARGUMENT...: a pair of versions sets $leader and $follower, the words that
# start each in COMMAND's place, $follower_more, what that is told besides, and $rules,
# options; no argument has a space then.
# $ring: how much the leader may be ahead.
# $distance: how many calls the two may be apart.
lead()
{
	if [ -n "$recording" ]; then
		command=$1
		shift
		another=${follower:+$follower $* $follower_more}
		# shellcheck disable=SC2086 # words
		set -- --record "$recording" -- ${leader:-$command} "$@"
	elif [ -n "$follower" ]; then
		shift
		# shellcheck disable=SC2086 # words
		set -- -f "$follower $* $follower_more" $rules -- $leader "$@"
	else
		set -- -- "$@"
		for i in $(seq "$followers"); do
			set -- -f same "$@"
		done
	fi
	launch "$@"
}

# launch WORDS...: of mve run; $server is its mve.
launch()
{
	"$MVE" run --ring "${ring:-8M}" --when-full block -n "$name" "$@" >>server.log 2>&1 </dev/null &
	server=$!
	echo $server >>"$folder/started"
}

# trouble WORDS: a report of failures may be cut short from above: what it is comes last.
trouble()
{
	tail -5 "$folder/server.log" >&2
	"$MVE" status "$name" | sed -n 3,6p >&2
	"$MVE" report "$name" >&2
	echo "$*" >&2
	exit 1
}

# client NAME ARGUMENTS...: checked load in the background, told by its status.
client()
{
	which=$1
	shift
	python3 "$load/$which.py" "$@" >"$which.out" 2>"$which.err" &
	echo "$! $which" >>clients
	echo $! >>"$folder/started"
}

clients_end()
{
	while read -r pid which; do
		wait "$pid" || trouble "$which: $(tail -3 "$which.err")"
	done <clients
	: >clients
}

# steady [DISTANCE [BEHIND]]: every follower is one still, and has come to where the leader is.
steady()
{
	"$MVE" status "$name" --json >now.json || trouble "no status"
	python3 "$load/steady.py" now.json "$followers" "$@"
}

steady_told()
{
	steady "${distance:-100}" "${oldest:+100}" >steady.out 2>&1
}

# What sanitizers have found, a line each, but for what has $known (a pattern) in it.
findings_other()
{
	for number in $("$MVE" report "$name" --list 2>/dev/null | awk '$4 == "found" { print $1 }'); do
		"$MVE" report "$name" "$number" --json |
			python3 -c 'import json, sys; print(json.load(sys.stdin)["summary"])'
	done | grep -v "${known:-^$}"
}

# replay OPTION... [-- COMMAND...]: $recording, to its end; one whole line of what it says.
replay()
{
	"$MVE" replay -n "$name" "$@" >replay.out 2>replay.err || {
		head -20 replay.err >&2
		"$MVE" report "$name" >&2
		fail "replay $*: $?"
	}
	cat replay.out
}

replays()
{
	replay "$recording"
	replay "$recording"
	# shellcheck disable=SC2086 # words
	[ -z "$another" ] || replay $rules "$recording" -- $another
	echo "$(du -sm "$recording" | cut -f1) MB recorded"
}

# Nobody was dropped, nothing was found, and all is told.
followed()
{
	within 20 steady_told || trouble "$(cat steady.out)"
	told=$(cat steady.out)
	found=$(findings_other)
	[ -z "$found" ] || trouble "found: $found"
}

# leave WORDS: the last look, then the end.
leave()
{
	if [ -n "$recording" ]; then
		"$MVE" status "$name" --json >now.json || trouble "no status"
	else
		followed
	fi
	"$MVE" stop "$name" >/dev/null || trouble "mve stop fails"
	within 10 gone "$server" || trouble "the server does not end"
	session_ended
	for pid in $(python3 "$load/steady.py" now.json pids); do
		gone "$pid" 2>/dev/null || fail "pid $pid of a version is left"
	done
	[ -z "$recording" ] || told=$(replays) || fail "it does not replay"
	echo "$1; $told"
	echo "$(basename "$0" .sh): ok"
}

# pages FOLDER: files for http_load.py.
pages()
{
	mkdir -p "$1"
	echo "hello" >"$1/index.html"
	seq 1 3000 >"$1/numbers.txt"
	seq 1 60000 | head -c 300000 >"$1/big.bin"
	seq 1 500000 | head -c 3000000 >"$1/huge.bin"
	chmod -R a+rX "$1"
}
