#!/bin/sh
# Python: a threading http.server, asyncio, multiprocessing and subprocess.
. "$ROOT/tests/servers/lib.sh"
need python3 curl

work()
{
	mkdir files && echo "hello from python" >files/index.html
	head -c 300000 /dev/zero | tr '\0' z >files/big
	start python3 -m http.server --bind 127.0.0.1 -d files "$port"
	up
	url=http://127.0.0.1:$port
	curl -sS -m 10 "$url/"
	held_from
	curl -sS -m 10 "$url/big" | cksum
	curl -sS -m 20 "$url/index.html?[1-200]" | sort | uniq -c
	held_all
	finish
	session_ended
	( under python3 "$here/python_work.py" 2>&1 )
	echo "work: $?"
}

in_each_mode work
