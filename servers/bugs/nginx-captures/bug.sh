# CVE-2026-9256: a rewrite whose captures overlap writes them escaped into memory
# that was measured as if they did not.
. "$bugs/nginx.sh"
without=CVE-2026-9256.patch

arguments()
{
	serve 'location /moved/ { rewrite ^/moved/((.*))$ http://127.0.0.1/$1$2 redirect; }'
}
