#!/bin/sh
# The monitor is killed outright: the server goes on serving new requests,
# and mve ps calls its session unwatched.
. "$ROOT/tests/lib.sh"

command -v python3 >/dev/null || skip "needs python3"

cat >server.py <<'END'
import http.server, os
class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
with open("new", "w") as file:
    print(server.server_address[1], os.getpid(), file=file)
os.rename("new", "at")
server.serve_forever()
END
fetch='import sys, urllib.request as u
print(u.urlopen("http://127.0.0.1:%s/content" % sys.argv[1], timeout=30).read())'
echo hello >content

for tier in patch trap; do
	rm -f at
	"$MVE" run --tier=$tier -n "$MVE_SESSION" -- python3 server.py &
	monitor=$!
	within 10 test -e at || fail "the server never came up"
	read port server <at
	python3 -c "$fetch" "$port" | grep -q hello || fail "no answer at first"
	"$MVE" ps | grep "$MVE_SESSION" | grep -q unwatched && fail "unwatched too early"
	kill -KILL $monitor
	wait $monitor 2>/dev/null
	for i in 1 2 3 4 5 6 7 8 9 10; do
		python3 -c "$fetch" "$port" | grep -q hello || {
			kill -KILL "$server"
			fail "tier $tier: no answer after the monitor's death"
		}
	done
	"$MVE" ps >ps.txt
	grep "$MVE_SESSION" ps.txt | grep -q unwatched || {
		kill -KILL "$server"
		fail "tier $tier: ps does not say unwatched: $(cat ps.txt)"
	}
	kill -TERM "$server"
	within 30 sh -c "! kill -0 $server" || {
		kill -KILL "$server"
		fail "tier $tier: SIGTERM does not end the server"
	}
	"$MVE" ps >/dev/null	# sweeps what the dead session left
	clean
done
