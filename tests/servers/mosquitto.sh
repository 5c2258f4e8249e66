#!/bin/sh
# mosquitto: subscribe, publish at QoS 0, 1 and 2, a retained message, a will.
. "$ROOT/tests/servers/lib.sh"
need mosquitto python3

work()
{
	printf 'listener %s 127.0.0.1\nallow_anonymous true\nset_tcp_nodelay true\npersistence true\npersistence_location %s/\nuser root\n' \
		"$port" "$folder" >mosquitto.conf
	start mosquitto -c "$folder/mosquitto.conf"
	up
	python3 "$here/mosquitto_client.py" "$port" 50 || fail "$mode: the client"
	held_from
	python3 "$here/mosquitto_client.py" "$port" 1000 || fail "$mode: the client"
	held_all
	kill -USR1 "$(server_pid)"
	finish
}

in_each_mode work
