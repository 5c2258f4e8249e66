#!/bin/sh
# A server that has locked its memory, natively, is attached to and followed: it gets no more
# memory than mve has use for.
. "$(dirname "$0")/../lib.sh"

"$TESTS/mlockall" serve &
server=$!
while grep -q "^VmLck:.* 0 kB" /proc/$server/status; do
	sleep 0.1
done
"$MVE" attach -n "$MVE_SESSION" $server 2>said &
mve=$!
for i in $(seq 100); do
	"$MVE" ps | grep -q "$MVE_SESSION .*running" && break
	sleep 0.1
done
"$MVE" follow "$MVE_SESSION" >>said 2>&1
followed=$?
kib=$(sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' /proc/$server/status)
kill $server
wait $mve $server
[ $followed = 0 ] || fail "no follower: $(cat said)"
[ "$kib" -lt 524288 ] || fail "$kib KiB resident"
clean
echo "locked: ok"
