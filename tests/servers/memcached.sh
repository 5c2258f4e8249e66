#!/bin/sh
# memcached: four threads, many clients at once, then the daemon that -d makes.
. "$ROOT/tests/servers/lib.sh"
need memcached python3

work()
{
	chmod 777 .
	start memcached -u nobody -l 127.0.0.1 -p "$port" -U 0 -t 4 -m 64 -P "$folder/pid"
	up
	python3 "$here/memcached_load.py" "$port" 200 || fail "$mode: the load"
	held_from
	python3 "$here/memcached_load.py" "$port" 2000 || fail "$mode: the load"
	held_all
	finish
}

daemon()
{
	( under memcached -u nobody -d -l 127.0.0.1 -p "$port" -U 0 -P "$folder/daemon.pid" )
	echo "starting it: $?"
	up
	within 30 test -s daemon.pid
	pid=$(cat daemon.pid)
	left "$pid"
	python3 "$here/memcached_load.py" "$port" 200 || fail "$mode: the load on the daemon"
	held_all
	kill -TERM "$pid"
	within 10 gone "$pid" || fail "$mode: the daemon does not end"
}

both()
{
	work
	session_ended
	daemon
}

in_each_mode both
