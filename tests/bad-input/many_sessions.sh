#!/bin/sh
# Many sessions at once, all seen by mve ps, ended together and apart.
. "$ROOT/tests/lib.sh"

count=20
pids=
i=0
while [ $i -lt $count ]; do
	"$MVE" run -n "$MVE_SESSION-$i" -- sh -c "echo $i; exec sleep 30" \
		>out.$i 2>err.$i &
	pids="$pids $!"
	i=$((i + 1))
done
all_run() { [ "$(cat out.* | wc -l)" = $count ]; }
within 20 all_run || fail "not every program came up"
all_seen() { [ "$("$MVE" ps | grep -c "$MVE_SESSION-")" = $count ]; }
within 20 all_seen || fail "ps sees: $("$MVE" ps)"
for pid in $pids; do
	kill -TERM $pid
done
for pid in $pids; do
	wait $pid
	status=$?
	[ $status = 143 ] || fail "a session ended with $status"
done
i=0
while [ $i -lt $count ]; do
	[ "$(cat out.$i)" = $i ] || fail "session $i printed $(cat out.$i err.$i)"
	i=$((i + 1))
done
clean
