#!/bin/sh
# Commands of --on-finding and --on-divergence that hang: nobody waits for them, not at the
# session's end either; after a minute they are gone, with what they have started.
. "$ROOT/tests/follow/lib.sh"
need python3

httpd=$ROOT/build/servers/httpd
pages files
cp -r files others
cat >hang <<'END'
#!/bin/sh
trap '' TERM
sleep 300 &
echo $! >"$1.pids"
echo $$ >>"$1.pids"
wait
sleep 300
END
chmod +x hang

hangs()
{
	[ "$(wc -l <"$1.pids")" = 2 ]
}

all_gone()
{
	for pid in $(cat found.pids differs.pids); do
		gone "$pid" || return 1
	done
}

launch -f "$httpd-asan $port $folder/files" --on-finding './hang found' \
	-f "$httpd $port $folder/others" --on-divergence 'alarm:./hang differs' \
	-- "$httpd" "$port" "$folder/files"
up
printf 'GET /100%% HTTP/1.1\r\nHost: here\r\n\r\n' >bug
python3 "$ROOT/servers/bugs/send.py" "$port" bug >came
printf 'GET /index.html HTTP/1.1\r\nHost: here\r\n\r\n' >page
python3 "$ROOT/servers/bugs/send.py" "$port" page >came
within 20 hangs found || trouble "nothing is found"
within 20 hangs differs || trouble "nothing differs"
left $(cat found.pids differs.pids)
"$MVE" stop "$name" >/dev/null || trouble "mve stop fails"
within 10 gone "$server" || trouble "the server does not end"
session_ended
for pid in $(cat found.pids differs.pids); do
	! gone "$pid" || fail "a command ended with the session"
done
within 90 all_gone || fail "a command goes on: $(cat found.pids differs.pids)"
echo "hooks: ok"
