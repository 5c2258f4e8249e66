#!/bin/sh
# HAProxy before a python server, with checks of its health.
# One thread: two hand tasks to each other without a lock or a call, and who has
# which is another's luck in a follower.
. "$ROOT/tests/follow/lib.sh"
need haproxy python3

behind=$(free_port)
pages files
rm files/*.bin		# python's own pace is slow enough
cat >haproxy.cfg <<-END
global
	nbthread 1
defaults
	mode http
	timeout connect 30s
	timeout client 30s
	timeout server 30s
	timeout check 10s
frontend in
	bind 127.0.0.1:$port
	default_backend out
backend out
	option httpchk GET /
	http-reuse always
	server one 127.0.0.1:$behind check inter 200
END
python3 "$load/backend.py" "$behind" files 2>backend.log &
left $!
up "$behind"
lead haproxy -db -f "$folder/haproxy.cfg"
up
client http_load "$port" "$seconds" files noranges
clients_end
leave "$(cat http_load.out) requests"
