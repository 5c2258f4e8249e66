#!/bin/sh
# What each sanitizer in a follower reports becomes a finding with its request; equal
# ones are counted; those that go on are followed on.  tests/sanitizers/faulty.c
. "$ROOT/tests/sanitizers/lib.sh"
need gcc python3
flags="$flags -w"

# ask LETTERS: on a connection of its own.
ask()
{
	printf '%s\n' "$1" | python3 "$ROOT/servers/bugs/send.py" "$port" - >came || fail "$with: no server"
	grep -qx ok came || fail "$with: the leader answers $(cat came)"
}

# findings N ALL: so many different ones, so often.
findings()
{
	"$MVE" status "$name" | grep -qE "findings: $1, seen $2 times?( |$)"
}

# kept N WORDS REQUEST: finding N has them.
kept()
{
	"$MVE" report "$name" "$1" >kept.out || fail "$with: no report $1"
	grep -q "$2" kept.out || fail "$with: not $2: $(head -n 8 kept.out)"
	grep -qxF "  $3\\n" kept.out || fail "$with: not $3: $(cat kept.out)"
}

ended()
{
	"$MVE" status "$name" | grep -q '1 found,.*ended by its sanitizer'
}

# ends WORDS REQUEST: the last request was the follower's end, the leader goes on.
ends()
{
	within 20 findings 1 1 || trouble "$with: nothing is found"
	kept 1 "$1" "$2"
	within 20 ended || trouble "$with: its end"
	ask n
}

# The count is written a little later.
counted()
{
	"$MVE" report "$name" 1 | grep -q '^found 2 times$'
}

goes_on()
{
	within 20 findings "$1" "$2" || trouble "$with: not found: $("$MVE" status "$name" | sed -n 3,5p)"
	ask n
	within 10 steady_told || trouble "$with: $(steady 2>&1)"
}

of_kind()
{
	case $with in
	*address*)
		ask na && ends 'heap-buffer-overflow in fault_address at faulty.c' na ;;
	*memory*)
		ask m && ends 'use-of-uninitialized-value in fault_unknown at faulty.c' m ;;
	*undefined*)
		ask fnu && goes_on 1 1
		ask fnnu && goes_on 1 2		# a process says it once
		kept 1 'signed integer overflow at faulty.c:' fnu
		within 10 counted || fail "$with: not found 2 times: $("$MVE" report "$name" 1)" ;;
	*thread*)
		ask nt && goes_on 1 1
		kept 1 'data race in fault_race' nt ;;
	esac
}

reported()
{
	port=$(free_port)
	rm -rf "$XDG_STATE_HOME/mve/$name"
	lead "$port"
	up
	of_kind
	printf 'q\n' | python3 "$ROOT/servers/bugs/send.py" "$port" - >came
	within 20 gone "$server" || trouble "$with: the server does not end"
	session_ended
}

# What was lost is told at the end, without a request.
leaked()
{
	port=$(free_port)
	rm -rf "$XDG_STATE_HOME/mve/$name"
	lead "$port"
	up
	ask nl
	printf 'q\n' | python3 "$ROOT/servers/bugs/send.py" "$port" - >came
	within 20 gone "$server" || trouble "$with: the server does not end"
	session_ended
	"$MVE" report "$name" >kept.out || fail "$with: no leak is found: $(cat server.log)"
	grep -q 'detected memory leaks in fault_leak at faulty.c' kept.out ||
		fail "$with: another leak: $(head -n 12 kept.out)"
	grep -q '^no request: leaks' kept.out || fail "$with: a leak has a request"
	! grep -q '^CODE ' kept.out || fail "$with: the symbolizer's words: $(cat kept.out)"
}

build_all "$ROOT/tests/sanitizers/faulty.c"
followers=1
for with in $made; do
	case $with in *leak*) ;; *) reported ;; esac
	case $with in *leak* | *address*) leaked ;; esac
done
echo "findings: ok"
