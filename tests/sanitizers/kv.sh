#!/bin/sh
# servers/kv native, followed by each sanitizer's build of it, under load.
. "$ROOT/tests/sanitizers/lib.sh"
need gcc python3

loaded()
{
	port=$(free_port)
	lead "$port"
	up
	python3 "$ROOT/servers/kv/client.py" "$port" load "$seconds" >load.out ||
		trouble "$with: the client fails"
	leave "$with:$(cat load.out)"
}

build_all "$ROOT/servers/kv/v1.c"
alone_and_together loaded
