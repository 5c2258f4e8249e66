# bugs.sh NAME [record]: a bug of servers/bugs that the native leader survives, found by an ASan
# follower, while clients of the leader are served on; or in its recording, replayed against the
# ASan build.  The finding names the function and has the request; sent to an ASan build alone, it
# shows the bug again.
. "$ROOT/tests/follow/lib.sh"
root=$ROOT
. "$ROOT/servers/bugs/lib.sh"
need gcc python3
bug_load "$1" || fail "no such bug: $1"
how=${2:-follow}
tool=$ROOT/tests/sanitizers

found()
{
	"$MVE" report "$name" --json >report.json 2>/dev/null
}

plain=$(bug_program plain) && asan=$(bug_program asan) || skip "$server cannot be built"
export ASAN_OPTIONS=detect_leaks=0
spare=$(free_port)
bug_begin
left $helpers
arguments
if [ "$how" = record ]; then
	set -- --record "$folder/recording"
else
	set -- --ring 256M -f "$asan $words" --name asan \
		--on-finding 'echo "$MVE_FOLLOWER $MVE_REPORT" >>hook.out'
fi
# shellcheck disable=SC2086 # words
"$MVE" run -n "$name" "$@" -- $plain $words >>server.log 2>&1 </dev/null &
server=$!
left $server
within 20 bug_alive || trouble "$bug: the server does not start"
printf "$alive" >alive
python3 "$tool/served.py" "$port" alive "$reply" stop >served.out 2>&1 &
client=$!
left $client
sleep 1
bug_send "$bugs/$bug/request" >came || trouble "$bug: the request cannot be sent"
[ "$how" = record ] || within 30 found ||
	trouble "$bug: nothing is found; $(tail -n 2 served.out)"
sleep 1
touch stop
wait $client || trouble "$bug: clients are not served on: $(tail -n 2 served.out)"
bug_alive || trouble "$bug: the leader does not serve on"
if [ "$how" = follow ]; then
	grep -qx "asan .*report-1.json" hook.out || trouble "$bug: the hook: $(cat hook.out)"
	within 10 sh -c "'$MVE' status '$name' | grep -q '1 found, findings: 1, seen 1 time'" ||
		trouble "$bug: the follower's end"
fi
"$MVE" stop "$name" >/dev/null || trouble "mve stop fails"
within 10 gone "$server" || trouble "the server does not end"
session_ended
if [ "$how" = record ]; then
	"$MVE" replay -n "$name" recording >replay.out 2>&1 || fail "$bug: $(cat replay.out)"
	# shellcheck disable=SC2086 # words
	"$MVE" replay -n "$name" recording -- $asan $words >replay.out 2>&1
	[ $? = 1 ] && found || fail "$bug: nothing is found: $(cat replay.out)"
fi
python3 "$tool/found.py" report.json "$report" "$function" "$bugs/$bug/request" >found.out ||
	fail "$bug: $(cat found.out)"
"$root/servers/bugs/try" "$bug" "$(sed -n 2p found.out)" >again.out 2>&1 ||
	fail "$bug: not shown again: $(cat again.out)"
echo "$(sed -n 1p found.out); $(cat served.out)"
echo "bugs: ok"
