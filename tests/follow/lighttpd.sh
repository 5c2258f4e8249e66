#!/bin/sh
# lighttpd: static files, large ones, and a CGI program.
. "$ROOT/tests/follow/lib.sh"
need lighttpd python3

pages files
printf '#!/bin/sh\necho Content-Type: text/plain; echo; echo "from cgi: $QUERY_STRING"; cat\n' >files/it.cgi
chmod +x files/it.cgi
cat >lighttpd.conf <<-END
server.modules = ( "mod_cgi", "mod_accesslog" )
server.bind = "127.0.0.1"
server.port = $port
server.document-root = "$folder/files"
server.errorlog = "$folder/error.log"
server.max-keep-alive-requests = 1000
server.upload-dirs = ( "$folder" )
accesslog.filename = "$folder/access.log"
index-file.names = ( "index.html" )
cgi.assign = ( ".cgi" => "" )
END
lead lighttpd -D -f "$folder/lighttpd.conf"
up
client http_load "$port" "$seconds" files cgi
clients_end
leave "$(cat http_load.out) requests"
