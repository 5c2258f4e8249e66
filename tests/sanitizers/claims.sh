#!/bin/sh
# Findings are asked of a follower that has no sanitizer in it: mve says so, once, and
# the session goes on; of one that has, nothing is said.
. "$ROOT/tests/follow/lib.sh"
need python3

# claims PROGRAM: a session whose follower is to find something.
claims()
{
	port=$(free_port)
	: >server.log
	launch -f "$1 $port $folder/files" --on-finding true \
		-- "$ROOT/build/servers/httpd" "$port" "$folder/files"
	up
}

said()
{
	grep -q "^mve: $name/f1: no sanitizer is in it, so nothing will be found: .*/httpd" server.log
}

over()
{
	within 10 steady_told || trouble "$(cat steady.out)"
	"$MVE" stop "$name" >/dev/null || trouble "mve stop fails"
	within 10 gone "$server" || trouble "the server does not end"
	session_ended
}

distance=100000000
pages files
claims "$ROOT/build/servers/httpd"
within 10 said || trouble "nothing is said of a follower without a sanitizer"
sleep 1
[ "$(grep -c "no sanitizer" server.log)" = 1 ] || trouble "it is said again"
over
claims "$ROOT/build/servers/httpd-asan"
sleep 4
! grep -q "no sanitizer" server.log || trouble "said of one that has it"
over
echo "claims: ok"
