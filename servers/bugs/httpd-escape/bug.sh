# The planted bug of servers/httpd: two bytes behind the end of a path are read when
# the path ends in '%'.  See servers/httpd/request.c.
server=httpd
report=heap-buffer-overflow function=hex_byte
alive='GET / HTTP/1.0\r\n\r\n' reply='200 OK'

arguments()
{
	mkdir -p files && echo hello >files/index.html
	words="$port $PWD/files"
}
