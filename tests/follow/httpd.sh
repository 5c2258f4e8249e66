#!/bin/sh
# httpd, our web server; with a third argument, bzip2, each reply is compressed.
. "$ROOT/tests/follow/lib.sh"
need python3

pages files
lead "$ROOT/build/servers/httpd" "$port" "$folder/files" ${3-}
up
client http_load "$port" "$seconds" files noranges
clients_end
leave "$(cat http_load.out) requests"
