# CVE-2022-22707: one number too many, -1, is written behind a table on the stack
# for a Forwarded field of many commas.  Mended in 1.4.64; undo.patch takes the
# fix back in 1.4.69.
server=lighttpd change=undo.patch
report=stack-buffer-overflow function=mod_extforward_Forwarded
alive='GET / HTTP/1.0\r\n\r\n' reply='200 OK'

arguments()
{
	mkdir -p files && echo hello >files/index.html
	cat >lighttpd.conf <<-END
	server.modules = ( "mod_extforward" )
	server.bind = "127.0.0.1"
	server.port = $port
	server.document-root = "$PWD/files"
	server.errorlog = "$PWD/error.log"
	index-file.names = ( "index.html" )
	extforward.forwarder = ( "127.0.0.1" => "trust" )
	extforward.headers = ( "Forwarded" )
	END
	words="-D -f $PWD/lighttpd.conf"
}
