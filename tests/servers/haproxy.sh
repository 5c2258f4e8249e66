#!/bin/sh
# HAProxy with two threads before a python server; master-worker mode too.
. "$ROOT/tests/servers/lib.sh"
need haproxy curl python3

configure()
{
	cat >haproxy.cfg <<-END
	global
		nbthread 2
		stats socket $folder/admin mode 600 level admin
	defaults
		mode http
		timeout connect 5s
		timeout client 5s
		timeout server 5s
	frontend in
		bind 127.0.0.1:$port
		default_backend out
	backend out
		option httpchk GET /
		http-reuse always
		server one 127.0.0.1:$behind check inter 200
	END
}

work()
{
	behind=$(free_port)
	mkdir files && echo "from behind" >files/index.html
	head -c 300000 /dev/zero | tr '\0' z >files/big
	python3 -m http.server --bind 127.0.0.1 -d files "$behind" >/dev/null 2>&1 &
	left $!
	up "$behind"
	configure
	for how in -db -Ws; do
		name=$MVE_SESSION-$mode$how
		start haproxy "$how" -f "$folder/haproxy.cfg"
		up
		url=http://127.0.0.1:$port
		within 30 curl -sSf -m 5 "$url/" || fail "$mode: nothing through"
		curl -sS -m 10 "$url/"
		held_from
		curl -sS -m 10 "$url/big" | cksum
		curl -sS -m 10 -o /dev/null -w '%{http_code}\n' "$url/none"
		curl -sS -m 20 "$url/index.html?[1-200]" | sort | uniq -c
		held_all
		[ $how = -db ] && finish || finish USR1
		session_ended
	done
}

in_each_mode work
