#!/bin/sh
# --one-at-a-time where the turn is taken from a thread, or one works that had none (in_turns.c), or
# ends with it by an execve of another (exec.c): a follower lives to the end, no difference was tried
# again, and no thread waited in vain.
. "$ROOT/tests/lib.sh"

for part in in_turns:write in_turns:signal in_turns:spawn in_turns:yield in_turns:wake \
	in_turns:waitv in_turns:clock in_turns:elsewhere in_turns:children in_turns:private \
	in_turns:registered exec:; do
	program=${part%:*} word=${part#*:}
	case $word in
	private | registered) follower="$TESTS/$program $word other" ;;
	*) follower=same ;;
	esac
	"$MVE" run -n "$MVE_SESSION" --one-at-a-time --status status.json -f "$follower" -- \
		"$TESTS/$program" $word >out 2>err || fail "$part: status $?: $(cat err)"
	grep -q "^$program: ok" out || fail "$part: it printed $(cat out)"
	[ ! -s err ] || fail "$part: mve says: $(head -3 err)"
	python3 "$ROOT/tests/follow/turns.py" 0 1 || fail "$part: see $PWD/status.json"
done

# The kernel wakes one who waits for a thread's end: who waits for its turn is not the only one.
"$MVE" run -n "$MVE_SESSION" --one-at-a-time -f same -- "$TESTS/in_turns" ends >out 2>err ||
	fail "ends: status $?: $(cat err)"
grep -q "^in_turns: ok" out || fail "ends: it printed $(cat out)"
echo "in_turns: ok"
