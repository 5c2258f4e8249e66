#!/bin/sh
# Redis' own suite (Tcl) against a server held by mve, in both tiers, and against
# a leader whose follower must be alive at the end: the tests
# that fail are those that fail against a native one, at most.  The suite asks for INFO
# all the time, whose figures of memory are each twin's own.  UNITS: some of its units (unit/scan,
# say), instead of all.
. "$ROOT/tests/servers/lib.sh"
need redis-server tclsh

debian_source redis redis-7.0.15
# The suite wants its tools beside it.
for tool in redis-server redis-cli redis-benchmark redis-check-aof redis-check-rdb; do
	ln -sf "$(command -v $tool)" "$sources/redis-7.0.15/src/$tool"
done

# With --single, which is each one's own.
units=$(printf ' --single %s' $UNITS)
[ -n "$UNITS" ] || units=

suite()
{
	start redis-server --port "$port" --bind 127.0.0.1 --dir "$folder" \
		--enable-debug-command yes --enable-protected-configs yes
	up
	( cd "$sources/redis-7.0.15" && timeout 1200 ./runtest --host 127.0.0.1 \
		--port "$port" --tags '-slow -needs:debug' --timeout 300 $units ) >suite.log 2>&1
	echo "suite: $?"
	sed -i 's/\x1b\[[0-9;]*m//g' suite.log
	grep -aq '^\[ok\]' suite.log || fail "no test of the suite was run: $(tail -n 3 suite.log)"
	grep -aE '^\[(err|exception)\]' suite.log | sed 's/ in tests.*//' | sort -u
	held_all
	finish
}

more_modes=follow
replay_options="--rules $ROOT/rules/redis/twin.rules"
follower_options="--rules $ROOT/rules/redis/info.rules"
in_each_mode suite
