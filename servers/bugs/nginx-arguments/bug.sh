# CVE-2026-42945: after a rewrite that adds arguments, what `set` takes from a
# capture is escaped, into memory that was measured without.
. "$bugs/nginx.sh"
without=CVE-2026-42945.patch

arguments()
{
	serve 'location /note/ { rewrite ^/note/(.*) /new?c=1; set $note $1; return 200 $note; }'
}
