#!/bin/sh
# Long paths: of a version that is installed elsewhere (--map), of the report that an alarm is
# given, and of a prefix that is longer than may be.
. "$ROOT/tests/lib.sh"
bin=$ROOT/build/tests

mkdir old new
"$MVE" run -n "$MVE_SESSION" -f "$bin/long_paths open $PWD/new" --map "$PWD/old=$PWD/new" \
	--status map.json -- "$bin/long_paths" open "$PWD/old" >out 2>err || fail "map: $(cat out err)"
grep -q "dropped" err && fail "--map: $(cut -c1-300 err)"

state=$PWD/state
while [ ${#state} -lt 3700 ]; do
	state=$state/$(printf %0200d 0)
done
mkdir -p "$state"
printf '#!/bin/sh\n[ -s "$MVE_REPORT" ] && echo ${#MVE_REPORT} >told\n' >alarm
chmod 755 alarm
XDG_STATE_HOME=$state "$MVE" run -n "$MVE_SESSION" -f "$bin/differ byte" \
	--on-divergence alarm:./alarm -- "$bin/differ" none >out 2>err
within 10 test -s told || fail "the alarm's report is not there: $(cut -c1-300 err)"
[ "$(cat told)" -gt 3700 ] || fail "the alarm's report: $(cat told) characters"

long=/$(printf %0300d 0)
refused 2 "more than 255" "$MVE" run -f same --map "$long=/a" -- /bin/true
refused 2 "more than 255" "$MVE" run -f same --map "/a=$long" -- /bin/true
echo "long_paths: ok"
