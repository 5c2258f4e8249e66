#!/bin/sh
# A static Go server: goroutines on many threads, its own runtime, no libc.
. "$ROOT/tests/servers/lib.sh"
PATH=$PATH:/usr/local/go/bin
need go curl

work()
{
	start "$top/server" "127.0.0.1:$port"
	up
	url=http://127.0.0.1:$port
	curl -sS -m 10 "$url/hello"
	curl -sS -m 20 --parallel --parallel-max 20 "$url/spin?[1-200]" | sort | uniq -c
	held_from
	curl -sS -m 20 "$url/hello?[1-500]" | sort | uniq -c
	curl -sS -m 10 "$url/gc"
	curl -sS -m 10 "$url/exec"
	held_all
	finish
}

export GO111MODULE=off
CGO_ENABLED=0 go build -o server "$here/go_server.go" || fail "go build"
in_each_mode work
