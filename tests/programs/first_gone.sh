#!/bin/sh
# `mve stop` and `mve ps` of a server whose first thread has ended: it lives, and is ended.
. "$(dirname "$0")/../lib.sh"

for how in "" --kill; do
	rm -f out	# what it said before is no word of this one
	"$MVE" run -n "$MVE_SESSION" -- "$TESTS/first_gone" serve >out 2>err &
	mve=$!
	for i in $(seq 100); do
		grep -q ready out && break
		sleep 0.1
	done
	grep -q ready out || fail "it does not begin: $(cat err)"
	"$MVE" ps | grep -q "$MVE_SESSION .*running" || fail "not shown: $("$MVE" ps)"
	"$MVE" stop "$MVE_SESSION" $how || fail "stop $how: $?"
	wait $mve
	status=$?
	[ $status = $([ "$how" ] && echo 137 || echo 143) ] || fail "stop $how: status $status"
	clean
done
echo "first_gone: ok"
