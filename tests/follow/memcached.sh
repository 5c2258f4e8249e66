#!/bin/sh
# memcached with four threads and little memory: set, get, cas, incr, expiry,
# evictions; every value that comes back is one that was put there.
. "$ROOT/tests/follow/lib.sh"
need memcached python3

set -- -u nobody -l 127.0.0.1 -p "$port" -U 0 -t 4 -m 4 -I 1m
# How memory is moved between sizes, and so what is thrown out, changed until 1.6.38.
case $rules in
*1.6.38*) set -- "$@" -o no_slab_reassign ;;
esac
lead memcached "$@"
up
client memcached_load "$port" "$seconds"
clients_end
leave "$(cat memcached_load.out) requests"
