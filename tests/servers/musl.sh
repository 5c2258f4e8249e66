#!/bin/sh
# A static musl server: a thread for each connection, and a fork for /fork.
. "$ROOT/tests/servers/lib.sh"
need musl-gcc curl

work()
{
	start "$top/server" "$port"
	up
	url=http://127.0.0.1:$port
	curl -sS -m 10 "$url/"
	curl -sS -m 10 "$url/fork"
	held_from
	curl -sS -m 20 --parallel --parallel-max 10 "$url/?[1-500]" | sort | uniq -c
	held_all
	finish
}

musl-gcc -static -O1 -g -o server "$here/musl_server.c" || fail "musl-gcc"
in_each_mode work
