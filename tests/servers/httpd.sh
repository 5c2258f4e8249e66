#!/bin/sh
# httpd, our web server: files as they are and compressed, kept connections, wrong
# requests, the one behind its planted bug among them, which it survives.
. "$ROOT/tests/servers/lib.sh"
need curl bunzip2 python3
more_modes=follow

ask_wrong()
{
	python3 - "$port" <<-'END'
	import socket, sys
	for request in (b"GET /a% HTTP/1.1", b"GET /%zz HTTP/1.1", b"GET /../x HTTP/1.1",
	                b"GET x HTTP/1.1", b"GET /", b"\0", b"POST / HTTP/1.1", b"GET / FTP/1.1",
	                b"GET /" + 9000 * b"x"):
	    with socket.create_connection(("127.0.0.1", int(sys.argv[1])), 10) as client:
	        client.sendall(request + b"\r\n\r\n")
	        print(request[:20], client.recv(100).split(b"\r")[0])
	END
}

pages()
{
	mkdir -p files
	echo hello >files/index.html
	seq 1 200000 | head -c 1000000 >files/big
}

work()
{
	[ -d files ] || pages
	start "$ROOT/build/servers/httpd" "$port" files $1
	up
	url=http://127.0.0.1:$port
	for path in / /index.html /big; do
		curl -sS -m 10 "$url$path" | $2 | cksum
	done
	curl -sSI -m 10 "$url/index.html"
	curl -sS -m 10 -o /dev/null -w '%{http_code}\n' "$url/none" "$url/%69ndex.html?a"
	curl -sS -m 10 -0 "$url/none"
	ask_wrong
	held_from
	curl -sS -m 20 "$url/index.html?[1-1500]" | $2 | sort | uniq -c
	held_all
	finish
	tail -1 server.log
}

both()
{
	work '' cat
	[ "$mode" = native ] || session_ended
	work bzip2 bunzip2
}

in_each_mode both
