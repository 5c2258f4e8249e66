#!/bin/sh
# mosquitto: publishers and subscribers at QoS 0, 1 and 2, retained messages,
# wills, and what is kept on disk.
. "$ROOT/tests/follow/lib.sh"
need mosquitto python3

printf 'listener %s 127.0.0.1\nallow_anonymous true\nset_tcp_nodelay true\npersistence true\npersistence_location %s/\nautosave_interval 2\nuser root\n' \
	"$port" "$folder" >mosquitto.conf
lead mosquitto -c "$folder/mosquitto.conf"
up
client mqtt_load "$port" "$seconds"
clients_end
leave "$(cat mqtt_load.out) messages"
