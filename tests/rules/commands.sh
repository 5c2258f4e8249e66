#!/bin/sh
# The commands, their exit status, and what explain and graph print.
. "$ROOT/tests/rules/lib.sh"

expect 2 "$RULEC"
expect 2 "$RULEC" check
expect 2 "$RULEC" compile x.rules
expect 0 "$RULEC" -h
expect 3 "$RULEC" check no_such.rules
grep -q "^rulec: cannot read: no_such.rules: No such file" err || fail "$(cat err)"
expect 3 "$RULEC" check "$RULES"
expect 2 "$RULEC" build "$RULES/paper.rules"
expect 2 "$RULEC" build "$RULES/paper.rules" -o x.o
expect 3 "$RULEC" build "$RULES/paper.rules" -o /no/such/folder/x.so
expect 2 "$RULEC" explain "$RULES/paper.rules"
# What would mean nothing is refused, and not passed over; nothing is written then.
misused()
{
	words=$1
	shift
	expect 2 "$RULEC" "$@"
	head -1 err | grep -qxFe "rulec: $words" || fail "$*: $(head -1 err)"
	[ ! -e x.so ] || fail "$*: wrote an output"
}
misused "build: it takes one file" build "$RULES/paper.rules" "$RULES/paper.rules" -o x.so
misused "graph: it takes one file" graph "$RULES/paper.rules" "$RULES/paper.rules"
misused "fmt: with -o it takes one file" fmt "$RULES/paper.rules" "$RULES/paper.rules" -o x.so
misused "check: it takes no -o" check "$RULES/paper.rules" -o x.so
misused "build: it takes no -s" build "$RULES/paper.rules" -o x.so -s old
misused "explain: -s is old or new" explain "$RULES/paper.rules" -e 'getpid()' -s both
misused "check: no such pass" -d parse check "$RULES/paper.rules"
expect 0 "$RULEC" check "$RULES/bad/overlap.rules"
expect 1 "$RULEC" -W check "$RULES/bad/overlap.rules"
expect 1 "$RULEC" check "$RULES/paper.rules" "$RULES/bad/local.rules"

# A test that fails says where, and what came instead.
echo 'get: read(5, "GET k", 9) ; ok ; read(5, "GET x", 9) = 5' >wrong.t
expect 1 "$RULEC" test "$ROOT/rules/kv/kv.rules" wrong.t
grep -q '^wrong.t:1:33: error: get: `buf` of `read` is "GET k"' err || fail "$(cat err)"
grep -q "^0 passed, 1 failed" out || fail "$(cat out)"
echo 'read(5, "GET k", 9) ; fine ; read(_)' >wrong.t
expect 1 "$RULEC" test "$ROOT/rules/kv/kv.rules" wrong.t
: >empty.t
expect 1 "$RULEC" test "$ROOT/rules/kv/kv.rules" empty.t

expect 0 "$RULEC" explain "$ROOT/rules/kv/kv.rules" -s old \
	-e 'read(5,"TYPE k",…), write(5,"ERROR",5)' -c 'read(5,_,512)'
cat >explained <<'END'
tried:
  unknown: holds for 1 event
  put: the guard in line 18 says no to event 1, `read`
  put_string: is for another stage or version
follower:
  read: served by a match of unknown, = 13
    buf: "bad-command
"
END
sed 's/\r//' out | diff -u explained - || fail "explain"

# The compiler may be another, and have words before it; its messages are ours as well.
for cc in "gcc -m64" clang-19; do
	command -v "${cc%% *}" >/dev/null || continue
	expect 0 env CC="$cc" "$RULEC" build "$ROOT/rules/kv/kv.rules" -o x.so
	echo 'getpid() { nobody } => nothing' >wrong.rules
	expect 1 env CC="$cc" "$RULEC" build wrong.rules -o y.so
	grep -q "^wrong.rules:1:12: error: .*undeclared" err || fail "$cc: $(cat err)"
done
expect 3 env CC=no_such_cc "$RULEC" build "$ROOT/rules/kv/kv.rules" -o y.so
[ ! -e y.so ] || fail "an output of a compiler that failed"
rm -f x.so

expect 0 "$RULEC" graph "$RULES/paper.rules"
grep -q '^digraph' out && grep -q 'label="read"' out && grep -q 'label="vsftpd"' out ||
	fail "graph: $(cat out)"
clean
