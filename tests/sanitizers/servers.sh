#!/bin/sh
# servers.sh SCRIPT EDITION SECONDS [record]: SCRIPT of tests/follow (redis, memcached, lighttpd,
# nginx) with a plain build of Debian's source as the leader and EDITION of the same
# source (servers/build: asan, ubsan, ...) as its follower.  Nobody may differ, and
# nothing may be found that the edition does not find alone.  record: it is replayed against EDITION.
script=$1 edition=$2 seconds=$3

. "$ROOT/tests/lib.sh"

# edition_of EDITION NAME: by a path as long as the other's, which Redis counts as memory.
edition_of()
{
	program=$("$ROOT/servers/build" "$script" "$1" 2>build.err) || skip "$(cat build.err)"
	ln -s "$program" "$2"
	echo "$PWD/$2"
}

leader=$(edition_of plain leads) || skip "$leader"
follower=$(edition_of "$edition" heeds) || skip "$follower"
# Found by the edition alone as well, under the same load: they are there.
case $script-$edition in
memcached-ubsan*) known='load of misaligned address\|store to misaligned address' ;;
nginx-ubsan*) known='null pointer passed as argument 2.* at ngx_string.c:84' ;;
esac
export ASAN_OPTIONS=detect_leaks=0
# The runtime's own calls are counted, too: only lag, verdicts and findings tell.
oldest='' rules='' distance=100000000
set -- "$seconds" ${4:+"$4"}
. "$ROOT/tests/follow/$script.sh"
