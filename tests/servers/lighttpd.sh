#!/bin/sh
# lighttpd: static files, a CGI program, keep-alive, graceful stop.
. "$ROOT/tests/servers/lib.sh"
need lighttpd curl

configure()
{
	mkdir files
	echo hello >files/index.html
	head -c 300000 /dev/zero | tr '\0' z >files/big
	printf '#!/bin/sh\necho Content-Type: text/plain; echo; echo "from cgi: $QUERY_STRING"; cat\n' \
		>files/it.cgi
	chmod +x files/it.cgi
	cat >lighttpd.conf <<-END
	server.modules = ( "mod_cgi", "mod_accesslog" )
	server.bind = "127.0.0.1"
	server.port = $port
	server.document-root = "$folder/files"
	server.errorlog = "$folder/error.log"
	server.upload-dirs = ( "$folder" )
	accesslog.filename = "$folder/access.log"
	index-file.names = ( "index.html" )
	cgi.assign = ( ".cgi" => "" )
	END
}

ask_a_lot()
{
	url=http://127.0.0.1:$port
	curl -sS -m 10 "$url/" || fail "$mode: no page"
	curl -sS -m 10 "$url/big" | cksum
	curl -sS -m 10 -o /dev/null -w '%{http_code}\n' "$url/none"
	curl -sS -m 10 -d 'a body' "$url/it.cgi?x=1"
	curl -sS -m 10 "$url/index.html?[1-500]" | sort | uniq -c
}

work()
{
	configure
	start lighttpd -D -f "$folder/lighttpd.conf"
	up
	ask_a_lot
	held_from
	curl -sS -m 10 "http://127.0.0.1:$port/index.html?[1-1500]" | sort | uniq -c
	held_all
	finish INT
}

in_each_mode work
