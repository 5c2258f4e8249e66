#!/bin/sh
# suites.sh SERVER: the server's own tests, with the server built by mve-cc and a checkpoint at
# each request (of Redis; memcached's requests come in several threads, so it soon has none).
# Left out is what is about something else: crash reports, sizes of memory of another allocator,
# several servers; and what fails as well where plain clang has built it.
set -eu
server=$1
program=$("$ROOT/servers/build" "$server" checkpoint 2>why) || { cat why; exit 77; }
export MVE_CHECKPOINT_SEAM=1

units="type/string type/incr type/hash type/set type/zset type/list type/list-2 type/list-3
type/stream keyspace scan expire multi sort bitops bitfield scripting functions pubsub protocol
geo hyperloglog acl introspection tracking querybuf slowlog limits lazyfree auth"

suite_redis()
{
	command -v tclsh >why || { echo "no tclsh"; exit 77; }
	cp -r "${program%/src/*}" redis && cd redis
	ln -sf "$(command -v redis-cli)" "$(command -v redis-benchmark)" src
	for unit in $units; do set -- "$@" --single "unit/$unit"; done
	shift
	./runtest --clients 2 "$@" >out 2>&1 || { grep -aE 'err.*\]|exception' out; exit 1; }
	echo "$(grep -ac '0m\]: ' out) tests of Redis passed"
}

suite_memcached()
{
	command -v prove >why || { echo "no prove"; exit 77; }
	cp -r "${program%/*}" memcached && cd memcached
	prove t/*.t >out 2>&1 || true
	cd "$(dirname "$("$ROOT/servers/build" memcached plain-clang)")"
	for file in $(sed -n 's/^\(t[^ ]*\) *(Wstat.*/\1/p' "$OLDPWD/out"); do
		! prove "$file" >"$OLDPWD/plain" 2>&1 || { echo "$file fails"; exit 1; }
	done
	grep '^Files=' "$OLDPWD/out"
}

"suite_$server" "$server"
echo "suites: ok"
