#!/bin/sh
# Wrong use of the command line: 2, one line, one hint.
. "$ROOT/tests/lib.sh"
many_refused=1

# Alone it tells how it is used.
"$MVE" >out 2>err
[ $? = 2 ] || fail "no arguments: status is not 2"
[ ! -s out ] || fail "no arguments: prints on standard output"
grep -q "^\(usage: mve\|mve: \)" err || fail "no arguments: $(cat err)"

refused 2 "frobnicate" "$MVE" frobnicate
refused 2 "" "$MVE" run
refused 2 "" "$MVE" run --
refused 2 "" "$MVE" run -n
refused 2 "no-such-option" "$MVE" run --no-such-option -- /bin/true
refused 2 "tier" "$MVE" run --tier=none -- /bin/true
refused 2 "tier" "$MVE" run --tier= -- /bin/true
refused 2 "" "$MVE" run -Z -- /bin/true
refused 2 "no_such" "$MVE" run --mark no_such -f same -- /bin/true
refused 2 "no function for --mark: other" "$MVE" run --mark request_plain --mark other -f same \
	-- "$TESTS/requests"
for option in -n -f --tier --mark --status --ring --hang; do
	refused 2 "option needs a value: $option" "$MVE" run $option -- /bin/true
done
for option in --name --release --rules --map --on-divergence --on-finding; do
	refused 2 "option needs a value: $option" "$MVE" run -f same $option -- /bin/true
done
refused 2 "option needs a value: -o" "$MVE" trace -o -- /bin/true
for option in --name --rules --wait; do
	refused 2 "option needs a value: $option" "$MVE" follow none $option -- /bin/true
	refused 2 "option needs a value: $option" "$MVE" follow none $option
done
for wrong in retry: retry:0 retry:-1 retry:2x retry:2/ retry:2/0 retry:2/5x retry:1000001 retry/5 retries; do
	refused 2 "not a value of --on-divergence: $wrong" "$MVE" run -f same \
		--on-divergence $wrong -- /bin/true
done
refused 2 "cannot replace it: -f '/bin/false'" "$MVE" run -f /bin/false --on-divergence retry:3 \
	-- /bin/true
refused 2 "cannot replace it" "$MVE" run --stateless --mark accept -f same --on-divergence retry \
	-- /bin/true
# What it proposes is of the command that was given.
refused 2 "no program" "$MVE" trace
grep -q "^hint: .*mve trace" err || fail "trace: $(cat err)"
refused 2 "hang: 1x" "$MVE" run --hang 1x -f same -- /bin/true
grep -q "^hint: milliseconds" err || fail "--hang: $(cat err)"
refused 2 "without a call, a function or a path" "$MVE" run --mark "" -f same -- /bin/true
refused 2 "no function for --mark: no_such" "$MVE" run --mark no_such -f same -- "$TESTS/requests"
refused 2 "mmap" "$MVE" run --mark mmap -f same -- /bin/true
refused 2 "path" "$MVE" run --mark /a --mark /b -f same -- /bin/true
refused 2 "follower" "$MVE" run --mark accept -- /bin/true
refused 2 "stateless" "$MVE" run --sample 10% -f same -- /bin/true
for wrong in 0% 101% 10 x% conn: conn:10 window:10% window:10%/0 window:10%/x auto1 auto: auto:0% auto:x; do
	refused 2 "sample: $wrong" "$MVE" run --stateless --sample $wrong -f same -- /bin/true
done
for wrong in 0x10% 1e1% inf% .% 10%% " 10%" +5% 100.1%; do
	refused 2 "sample: $wrong" "$MVE" run --stateless --sample "$wrong" -f same -- /bin/true
done
refused 2 "without a follower" "$MVE" run --stateless --sample 10% -- /bin/true
refused 2 "one file of rules: /dev/null" "$MVE" run -f same --rules /dev/null --rules /dev/null -- /bin/true
refused 2 "two names: a, b" "$MVE" run -n a --name b -f same -- /bin/true
refused 2 "no command" "$MVE" run -f same --on-finding "" -- /bin/true
cp "$TESTS/requests" stripped
strip stripped
refused 2 "stripped: it is stripped" "$MVE" run --mark request_plain -f same -- ./stripped
printf '#!/bin/sh\nexec /bin/true\n' >script
chmod 755 script
refused 2 "not a program with symbols: ./script" "$MVE" run --mark request_plain -f same \
	-- ./script
refused 2 "script: a shell runs it" "$MVE" run -f ./script -- /bin/true
refused 2 "/bin/sh: a shell runs it" "$MVE" run -f 'sh -c true' -- /bin/true
refused 2 "never waits" "$MVE" run --stateless --sample auto --when-full block -f same -- /bin/true
refused 2 "" "$MVE" status
refused 2 "" "$MVE" stop
refused 2 "" "$MVE" trace
for command in status stop audit; do
	"$MVE" $command no-such-session >out 2>err
	status=$?
	[ $status != 0 ] || fail "$command of no session: status 0"
	grep -q "^mve: .*no-such-session" err || fail "$command: $(cat err)"
	grep -q "^hint: ." err || fail "$command: no hint"
done
clean
