#!/bin/sh
# servers/httpd native, followed by each sanitizer's build of it, under load.
. "$ROOT/tests/sanitizers/lib.sh"
need gcc python3
flags="$flags -w"

loaded()
{
	port=$(free_port)
	lead "$port" "$folder/files"
	up
	client http_load "$port" "$seconds" files noranges
	clients_end
	leave "$with: $(cat http_load.out) requests"
}

pages files
build_all "$ROOT"/servers/httpd/*.c -lbz2
alone_and_together loaded
