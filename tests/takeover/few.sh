#!/bin/sh
# mve is begun where 64 descriptors may be open, and its server, which may have more, has 300: a
# follower takes them over.  The server has been given its own limit.
. "$(dirname "$0")/../lib.sh"

lines()
{
	for i in $(seq 300); do
		[ "$(wc -l <out)" -ge "$1" ] && return
		sleep 0.1
	done
	fail "it has stopped: $(cat err)"
}

gcc -O1 -o few "$ROOT/tests/takeover/few.c" || fail "gcc"
prlimit --nofile=64:4096 "$MVE" run -n "$MVE_SESSION" -f same -- ./few >out 2>err &
mve=$!
lines 10
kill -SEGV "$("$MVE" ps | awk -v name="$MVE_SESSION" '$1 == name { print $3 }')"
lines $(($(wc -l <out) + 20))
grep -q "f1 leads" err || fail "no takeover: $(cat err)"
[ "$(sort -u out)" = "64 300" ] || fail "$(sort -u out)"
"$MVE" stop "$MVE_SESSION" || fail "stop"
wait $mve
clean
echo "few: ok"
