#!/bin/sh
# lighttpd: static files, large ones, and a CGI program.  Releases that differ are told by
# the configuration what their defaults are not alike in, and have no CGI program and no log
# of requests (rules/README.md).
. "$ROOT/tests/follow/lib.sh"
need lighttpd python3

pages files
printf '#!/bin/sh\necho Content-Type: text/plain; echo; echo "from cgi: $QUERY_STRING"; cat\n' >files/it.cgi
chmod +x files/it.cgi
echo "not here" >error-404.html
cat >lighttpd.conf <<-END
server.bind = "127.0.0.1"
server.port = $port
server.document-root = "$folder/files"
server.errorlog = "$folder/error.log"
server.max-keep-alive-requests = 1000
server.upload-dirs = ( "$folder" )
index-file.names = ( "index.html" )
END
if [ -n "$oldest" ]; then
	kinds=
	distance=10000000	# each looks at its files by itself
	ring=64M		# replies to a pipeline are turns apart (rules/README.md)
	cat >>lighttpd.conf <<-END
	mimetype.assign = ( ".html" => "text/html", "" => "application/octet-stream" )
	server.errorfile-prefix = "$folder/error-"
	END
else
	kinds=cgi
	cat >>lighttpd.conf <<-END
	server.modules = ( "mod_cgi", "mod_accesslog" )
	accesslog.filename = "$folder/access.log"
	cgi.assign = ( ".cgi" => "" )
	END
fi
lead lighttpd -D -f "$folder/lighttpd.conf"
up
client http_load "$port" "$seconds" files $kinds
clients_end
leave "$(cat http_load.out) requests"
