#!/bin/sh
# HAProxy before a python server, with checks of its health.
# One thread: two hand tasks to each other without a lock or a call, and who has
# which is another's luck in a follower.
. "$ROOT/tests/follow/lib.sh"
need haproxy python3

behind=$(free_port)
pages files
rm files/*.bin		# python's own pace is slow enough
sed "s/@threads@/1/; s/@port@/$port/; s/@behind@/$behind/" "$load/haproxy.cfg" >haproxy.cfg
python3 "$load/backend.py" "$behind" files 2>backend.log &
left $!
up "$behind"
lead haproxy -db -f "$folder/haproxy.cfg"
up
client http_load "$port" "$seconds" files noranges
clients_end
leave "$(cat http_load.out) requests"
