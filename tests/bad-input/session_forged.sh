#!/bin/sh
# A session.json that names somebody else's process: mve stop leaves it alone and says so;
# one that is another user's, a link or a pipe is not read; and mve says whose a folder is.
. "$ROOT/tests/lib.sh"

began()
{
	sed 's/.*) //' "/proc/$1/stat" | cut -d' ' -f20
}

sleep 100 &
stranger=$!
folder=$XDG_RUNTIME_DIR/mve/$MVE_SESSION
ended()
{
	kill $stranger 2>/dev/null
	wait $stranger 2>/dev/null
	rm -rf "$folder"
}
trap ended EXIT

mkdir -p "$folder"
chmod 700 "$XDG_RUNTIME_DIR/mve" "$folder"
forge()
{
	printf '{"name": "x", "monitor": %s, "monitor_began": %s, "server": %s, "server_began": %s}' \
		"$1" "$(began "$1")" "$2" "$(began "$2")" >"$folder/session.json"
}

# Whoever the monitor is said to be: init, the stranger itself, none.
for monitor in 1 $stranger 2; do
	forge $monitor $stranger
	for how in "" --kill; do
		timeout 20 "$MVE" stop "$MVE_SESSION" $how 2>err && fail "stop says that it ended"
		kill -0 $stranger 2>/dev/null || fail "a stranger's process was ended"
	done
	grep -q "not a process of the session.*pid $stranger" err || fail "not said: $(cat err)"
done

# Neither the pid of one that has ended, and whose number another has now.
printf '{"monitor": 7, "monitor_began": 1, "server": %s, "server_began": 1}' $stranger \
	>"$folder/session.json"
timeout 20 "$MVE" stop "$MVE_SESSION" 2>err
[ $? = 1 ] && grep -q "no such session" err || fail "$(cat err)"
kill -0 $stranger || fail "a stranger's process was ended"

# A pipe in its place is not waited for.
mkdir -p "$folder"
chmod 700 "$folder"
rm -f "$folder/session.json"
mkfifo "$folder/session.json"
timeout 10 "$MVE" ps >/dev/null || fail "ps waits for a pipe"
timeout 10 "$MVE" stop "$MVE_SESSION" 2>err
[ $? = 1 ] || fail "$(cat err)"

# Another user's folder, or file: whose it is is said, and nothing of it is believed.
[ "$(id -u)" = 0 ] || exit 0
mkdir -p "$folder"
forge $stranger $stranger
chown 65534 "$folder/session.json"
timeout 10 "$MVE" stop "$MVE_SESSION" --kill 2>err
kill -0 $stranger || fail "another user's session.json is believed"
rm -rf "$folder"
mkdir -p "$folder"
chmod 700 "$folder"
forge $stranger $stranger
chown -R 65534 "$folder"
timeout 10 "$MVE" stop "$MVE_SESSION" --kill 2>err && fail "another user's folder is believed"
kill -0 $stranger || fail "another user's folder is believed"
grep -q "$folder: it belongs to another user (65534)" err || fail "not named: $(cat err)"
chown -R 0 "$folder"
