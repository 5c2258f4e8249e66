#!/bin/sh
# memcached's own tests (perl): natively, and with every server that they start
# held by mve, and with every one leading a follower: the same tests pass, and no
# follower is lost but of those in `racing`.  Recorded (`record`) each server's replays are equal,
# but of those, and of `racing_replayed`.  UNITS: some of t/*.t, instead of all.
. "$ROOT/tests/servers/lib.sh"
need gcc make prove perl
[ "$(id -u)" != 0 ] || need setpriv

debian_source memcached memcached-1.6.18
debian_library libevent-dev libevent-2.1-7 libevent-core-2.1-7
built=$sources/memcached-1.6.18
if ! grep -qs '^record)' "$built/memcached-debug" || grep -q 'coverage' "$built/config.status" ; then
	( cd "$built" && ./configure --disable-coverage CPPFLAGS="-I$sources/root/usr/include" \
		LDFLAGS="-L$sources/root/usr/lib/x86_64-linux-gnu" >conf.log 2>&1 &&
		make -j2 memcached memcached-debug sizes testapp timedrun >make.log 2>&1 &&
		{ [ -x memcached-debug.real ] || mv memcached-debug memcached-debug.real; } ) || fail "see $built/make.log"
	# The tests start ./memcached-debug: a script in its place.
	cat >"$built/memcached-debug" <<'END'
#!/bin/sh
real=$(dirname "$0")/memcached-debug.real
# The perl program that started it is a parent's parent.
test_of()
{
	while [ "$1" -gt 1 ] && ! tr '\0' '\n' <"/proc/$1/cmdline" | grep -o '[^/]*\.t$'; do
		set -- "$(cut -d' ' -f4 "/proc/$1/stat")"
	done
}
case "$MODE" in
follow) exec "$MVE" run -f same --when-full block --failover off \
	--status "$STATUS/$(test_of $PPID).$$.json" -n "$MVE_SESSION-$$" -- "$real" "$@";;
record) exec "$MVE" run --record "$STATUS/$(test_of $PPID).$$.log" --ring 4M --when-full block \
	-n "$MVE_SESSION-$$" -- "$real" "$@";;
patch|trap) exec "$MVE" run --tier=$MODE -n "$MVE_SESSION-$$" -- "$real" "$@";;
esac
exec "$real" "$@"
END
	chmod +x "$built/memcached-debug"
fi

# Tests whose servers race with themselves, so that a twin may differ (docs/followers.md):
# memcached's clock is a plain variable, and the buffers of other threads are counted
# as they work; the restart file is larger than what is told of mapped files.
racing="binary-extstore chunked-extstore error-extstore extstore extstore-buckets
	extstore-jbod lru-crawler maxconns restart slabs-reassign2"
# Workers look at the flags of those who watch without the lock under which they are set: a
# follower does so soon behind its leader, a replay at any time.
racing_replayed="watcher"

# Followers that were given up, of all the servers that the tests started.
lost()
{
	python3 - $racing <<'END'
import glob, json, sys
count = lost = races = 0
for path in sorted(glob.glob("status/*.json")):
    test = path.split("/")[1].split(".")[0]
    with open(path) as file:
        twins = json.load(file)["versions"][1:]
    count += len(twins)
    for v in twins:
        if not v["verdicts"] and v["why"] == "ended as the leader did":
            continue
        lost += test not in sys.argv[1:]
        races += test in sys.argv[1:]
        print(f"{test}: {v['role']}: {v['why']} {v['verdicts'] or ''}", file=sys.stderr)
print(f"{count} followers, {races} lost where memcached races, {lost} elsewhere", file=sys.stderr)
sys.exit(lost or not count)
END
}

races()
{
	echo " $racing $racing_replayed " | tr '\n\t' '  ' | grep -q " $1 "
}

# In the place of lib.sh's: of every server that the tests started.
replayed()
{
	count=0 races=0 calls=0
	for recording in status/*.log; do
		test=${recording#status/}
		count=$((count + 1))
		if said=$(replay "$recording"); then
			said=${said#replayed }
			calls=$((calls + ${said%% *}))
		elif races "${test%%.*}"; then
			races=$((races + 1))
		else
			fail "$test does not replay"
		fi
	done
	[ $count != 0 ] || fail "no server was recorded"
	echo "$count recordings, $(du -sm status | cut -f1) MB, $calls calls replayed twice," \
		"$races differ where memcached races" >replays
}

suite()
{
	# What counts is said of replays alone.
	[ "$only.$mode" != record.native ] || return 0
	mkdir status && chmod 777 status
	( cd "$built" && STATUS=$folder/status MODE=$mode timeout 900 prove -j2 ${UNITS:-t/} ) >suite.log 2>&1
	prove=$?
	grep -q '^Files=[1-9]' suite.log || fail "no test was run: $(tail -n 3 suite.log)"
	# Of what is recorded it is the replays that count: the disk's speed is extstore's alone.
	[ "$only" != record ] || return 0
	echo "prove: $prove"
	[ $mode != follow ] || lost 2>lost || fail "$(cat lost)"
	sed -n '/^Test Summary/,/^Files=/p' suite.log | grep -E '^(t/|  Failed)' | sed 's/Wstat.*//'
}

more_modes=follow
# Counters of other threads are read as they are: such a place is tried again.
replay_options="--rewind 8"
in_each_mode suite
