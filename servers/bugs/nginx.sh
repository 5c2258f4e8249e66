# What the bugs of nginx have in common; sourced by them.
server=nginx
report=heap-buffer-overflow function=ngx_escape_uri
alive='GET / HTTP/1.0\r\n\r\n' reply='200 OK'

# serve LOCATION: with this piece of configuration besides.
serve()
{
	mkdir -p logs
	cat >nginx.conf <<-END
	daemon off;
	worker_processes 1;
	pid nginx.pid;
	error_log logs/error.log;
	events { worker_connections 64; }
	http {
		access_log off;
		client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
		uwsgi_temp_path uwsgi; scgi_temp_path scgi;
		server {
			listen 127.0.0.1:$port;
			$1
			location / { return 200 "hello\n"; }
		}
	}
	END
	words="-p $PWD -e logs/error.log -c nginx.conf"
}
