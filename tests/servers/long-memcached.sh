#!/bin/sh
# memcached's own tests (perl): natively, and with every server that they start
# held by mve, and with every one leading a follower: the same tests pass.
. "$ROOT/tests/servers/lib.sh"
need gcc make prove perl
[ "$(id -u)" != 0 ] || need setpriv

debian_source memcached memcached-1.6.18
debian_library libevent-dev libevent-2.1-7 libevent-core-2.1-7
built=$sources/memcached-1.6.18
if ! grep -qs '^follow) exec' "$built/memcached-debug" || grep -q 'coverage' "$built/config.status" ; then
	( cd "$built" && ./configure --disable-coverage CPPFLAGS="-I$sources/root/usr/include" \
		LDFLAGS="-L$sources/root/usr/lib/x86_64-linux-gnu" >conf.log 2>&1 &&
		make -j2 memcached memcached-debug sizes testapp timedrun >make.log 2>&1 &&
		{ [ -x memcached-debug.real ] || mv memcached-debug memcached-debug.real; } ) || fail "see $built/make.log"
	# The tests start ./memcached-debug: a script in its place.
	cat >"$built/memcached-debug" <<'END'
#!/bin/sh
real=$(dirname "$0")/memcached-debug.real
case "$MODE" in
follow) exec "$MVE" run -f same --when-full block --status "$STATUS/$$.json" \
	-n "$MVE_SESSION-$$" -- "$real" "$@";;
patch|trap) exec "$MVE" run --tier=$MODE -n "$MVE_SESSION-$$" -- "$real" "$@";;
esac
exec "$real" "$@"
END
	chmod +x "$built/memcached-debug"
fi

# Followers that were given up, of all the servers that the tests started.
lost()
{
	cat "$folder"/status/*.json | python3 -c '
import json, sys
text, lost = sys.stdin.read(), 0
while text := text.lstrip():
    status, end = json.JSONDecoder().raw_decode(text)
    text = text[end:]
    lost += any(v["verdicts"] or v["role"] != "follower" for v in status["versions"][1:])
print("followers lost:", lost)'
}

suite()
{
	mkdir status && chmod 777 status
	( cd "$built" && STATUS=$folder/status MODE=$mode timeout 900 prove -j2 t/ ) >suite.log 2>&1
	echo "prove: $?"
	[ $mode != follow ] || [ "$(lost)" = "followers lost: 0" ] || fail "$(lost)"
	sed -n '/^Test Summary/,/^Files=/p' suite.log | grep -E '^(t/|  Failed)' | sed 's/Wstat.*//'
}

more_modes=follow
in_each_mode suite
