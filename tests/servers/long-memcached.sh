#!/bin/sh
# memcached's own tests (perl): natively, and with every server that they start
# held by mve: the same tests pass.
. "$ROOT/tests/servers/lib.sh"
need gcc make prove perl
[ "$(id -u)" != 0 ] || need setpriv

debian_source memcached memcached-1.6.18
debian_library libevent-dev libevent-2.1-7 libevent-core-2.1-7
built=$sources/memcached-1.6.18
if ! [ -x "$built/memcached-debug.real" ]; then
	( cd "$built" && ./configure CPPFLAGS="-I$sources/root/usr/include" \
		LDFLAGS="-L$sources/root/usr/lib/x86_64-linux-gnu" >conf.log 2>&1 &&
		make -j2 memcached memcached-debug sizes testapp timedrun >make.log 2>&1 &&
		mv memcached-debug memcached-debug.real ) || fail "see $built/make.log"
	# The tests start ./memcached-debug: a script in its place.
	cat >"$built/memcached-debug" <<'END'
#!/bin/sh
real=$(dirname "$0")/memcached-debug.real
case "$MODE" in
patch|trap) exec "$MVE" run --tier=$MODE -n "$MVE_SESSION-$$" -- "$real" "$@";;
esac
exec "$real" "$@"
END
	chmod +x "$built/memcached-debug"
fi

suite()
{
	( cd "$built" && MODE=$mode timeout 900 prove -j2 t/ ) >suite.log 2>&1
	echo "prove: $?"
	sed -n '/^Test Summary/,/^Files=/p' suite.log | grep -E '^(t/|  Failed)' | sed 's/Wstat.*//'
}

in_each_mode suite
