#!/bin/sh
# nginx: a master and two workers; static files with and without keep-alive, a
# reload by HUP, a graceful quit; then once more as a daemon.
. "$ROOT/tests/servers/lib.sh"
need nginx curl

configure()	# daemon on|off
{
	mkdir -p logs files
	chmod -R 755 .
	head -c 300000 /dev/zero | tr '\0' z >files/big
	echo "hello, $1" >files/index.html
	cat >nginx.conf <<-END
	daemon $1;
	worker_processes 2;
	pid $folder/nginx.pid;
	error_log $folder/logs/error.log;
	events { worker_connections 64; }
	http {
		access_log $folder/logs/access.log;
		client_body_temp_path $folder/t1;
		proxy_temp_path $folder/t2;
		fastcgi_temp_path $folder/t3;
		uwsgi_temp_path $folder/t4;
		scgi_temp_path $folder/t5;
		sendfile ${2:-on};
		server { listen 127.0.0.1:$port; root $folder/files; }
	}
	END
}

get()
{
	curl -sS -m 10 "$@"
}

# Every request of curl's own list goes over one connection.
ask_a_lot()
{
	url=http://127.0.0.1:$port
	get "$url/" || fail "$mode: no page"
	get "$url/big" | cksum
	get -o /dev/null -w '%{http_code}\n' "$url/none"
	get -I "$url/" | sed -n '1p;s/^Content-Length/&/p'
	get -r 100-199 "$url/big" | cksum
	get "$url/index.html?[1-300]" | sort | uniq -c
	for i in 1 2 3 4 5 6 7 8 9 10; do
		get -H 'Connection: close' "$url/" >/dev/null || fail "$mode: closing"
	done
}

workers()
{
	pgrep -P "$(cat nginx.pid)" | sort | tr '\n' ' '
}

reloaded()
{
	[ "$(workers | wc -w)" = 2 ] && [ "$(workers)" != "$before" ]
}

work()
{
	configure off
	start nginx -e "$folder/logs/first.log" -p "$folder" -c "$folder/nginx.conf"
	up
	within 30 test -s nginx.pid
	ask_a_lot
	held_from
	ask_a_lot
	held_all
	configure off off
	before=$(workers)
	kill -HUP "$(cat nginx.pid)"
	within 10 reloaded || fail "$mode: no new workers: $before, $(workers)"
	ask_a_lot
	kill -QUIT "$(cat nginx.pid)"
	finished
	cat logs/error.log | grep -E '\[(alert|emerg|crit|error)\]' | grep -v 'No such file'
	session_ended
	configure on
	( under nginx -e "$folder/logs/first.log" -p "$folder" -c "$folder/nginx.conf" )
	echo "starting the daemon: $?"
	up
	within 30 test -s nginx.pid
	left "$(cat nginx.pid)"
	get "http://127.0.0.1:$port/"
	held_all
	kill -QUIT "$(cat nginx.pid)"
	within 10 sh -c "! [ -e nginx.pid ]" || fail "$mode: the daemon does not end"
}

in_each_mode work
