#!/bin/sh
# nginx with a master and two workers: static files, connections that are kept,
# pipelines, gzip, and a proxy before a python server.
. "$ROOT/tests/follow/lib.sh"
need nginx python3

configure()
{
	mkdir -p logs
	cat >nginx.conf <<-END
	daemon off;
	worker_processes 2;
	pid $folder/nginx.pid;
	error_log $folder/logs/error.log;
	events { worker_connections 512; }
	http {
		access_log $folder/logs/access.log;
		client_body_temp_path $folder/t1;
		proxy_temp_path $folder/t2;
		fastcgi_temp_path $folder/t3;
		uwsgi_temp_path $folder/t4;
		scgi_temp_path $folder/t5;
		# Defaults that have changed: versions are to agree.
		keepalive_requests 1000;
		sendfile_max_chunk 0;
		sendfile on;
		gzip on;
		gzip_types text/plain;
		types { text/plain txt; text/html html; }
		upstream behind { server 127.0.0.1:$behind; keepalive 4; keepalive_requests 1000; }
		server {
			listen 127.0.0.1:$port;
			root $folder/files;
			# Its lines have a number that both workers count in shared memory.
			log_not_found off;
			location /proxy/ {
				proxy_pass http://behind/;
				proxy_http_version 1.1;
				proxy_set_header Connection "";
			}
		}
	}
	END
}

behind=$(free_port)
pages files
configure
python3 "$load/backend.py" "$behind" files 2>backend.log &
left $!
up "$behind"
# Versions before 1.19.5 know no -e.
early="-e $folder/logs/first.log"
[ -z "$follower" ] || early=
# shellcheck disable=SC2086 # words
lead nginx $early -p "$folder" -c "$folder/nginx.conf"
up
client http_load "$port" "$seconds" files gzip proxy
clients_end
leave "$(cat http_load.out) requests"
