#!/bin/sh
# Several `mve run -n X` at once: exactly one runs, the others say that the name is in use;
# also while another looks at the sessions, and where a dead one has left its folder.
. "$ROOT/tests/lib.sh"

round=0
while [ $round -lt 12 ]; do
	round=$((round + 1))
	rm -f ran.* err.* status.*
	mkfifo go
	for i in 1 2 3 4; do
		(
			read _ <go
			"$MVE" run -n "$MVE_SESSION" -- sh -c \
				": >ran.$i; while [ ! -e end ]; do sleep 0.02; done" 2>err.$i
			echo $? >status.$i
		) &
	done
	exec 9<>go
	sleep 0.05
	printf '\n\n\n\n' >&9
	exec 9>&-
	rm go
	"$MVE" ps >/dev/null
	"$MVE" ps >/dev/null
	# Three are refused, and one is left.
	within 30 sh -c '[ "$(ls status.* 2>/dev/null | wc -l)" = 3 ]' || {
		: >end
		fail "round $round: $(ls status.* 2>/dev/null | wc -l) have ended, not 3; $(cat err.*)"
	}
	within 30 sh -c 'ls ran.*' || { : >end; fail "round $round: none runs: $(cat err.*)"; }
	"$MVE" ps | grep -q "$MVE_SESSION" || { : >end; fail "round $round: ps forgets it"; }
	: >end
	wait
	rm end
	[ "$(cat status.* | sort | tr '\n' ' ')" = "0 2 2 2 " ] ||
		fail "round $round: $(cat status.* | tr '\n' ' '): $(cat err.*)"
	[ "$(ls ran.* | wc -l)" = 1 ] || fail "round $round: several ran"
	[ "$(grep -l "the name is in use" err.* | wc -l)" = 3 ] || fail "$(cat err.*)"
	clean
	# What a killed one leaves: its folder, with whatever was written by then.
	mkdir -p "$XDG_RUNTIME_DIR/mve/$MVE_SESSION"
	chmod 700 "$XDG_RUNTIME_DIR/mve/$MVE_SESSION"
	[ $((round % 3)) = 0 ] || echo '{' >"$XDG_RUNTIME_DIR/mve/$MVE_SESSION/session.json"
	[ $((round % 3)) = 1 ] || : >"$XDG_RUNTIME_DIR/mve/$MVE_SESSION/session.json.7-0.tmp"
done
"$MVE" ps >/dev/null
clean
