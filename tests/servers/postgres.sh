#!/bin/sh
# PostgreSQL as a user of its own: initdb under mve, tables, joins, concurrent
# updates by pgbench when it is there, a fast stop and a restart.
. "$ROOT/tests/servers/lib.sh"
[ "$(id -u)" = 0 ] || skip "needs root, to become the user postgres"
for bin in /usr/lib/postgresql/*/bin; do
	PATH=$bin:$PATH
done
need initdb postgres psql setpriv
who=postgres
getent passwd $who >/dev/null || who=nobody

as_user()
{
	setpriv --reuid $who --regid "$(id -g $who)" --clear-groups \
		env HOME="$folder" XDG_RUNTIME_DIR="$folder/run" "$@"
}

sql()
{
	as_user psql -h "$folder" -p "$port" -U $who -d "${1}" -At -c "$2" 2>&1
}

ready()
{
	as_user pg_isready -q -h "$folder" -p "$port"
}

# mve runs as the user too: its session is that user's.
mve_as_user()
{
	exec setpriv --reuid $who --regid "$(id -g $who)" --clear-groups \
		env HOME="$folder" XDG_RUNTIME_DIR="$folder/run" "$@"
}

begin()
{
	( if [ "$mode" = native ]; then mve_as_user "$@"
	else mve_as_user "$MVE" run --tier="$mode" -n "$name" -- "$@"; fi ) \
		>>server.log 2>&1 </dev/null &
	server=$!
	left $server
}

work()
{
	chown $who . && mkdir -m 700 run && chown $who run
	touch server.log && chmod 666 server.log
	begin initdb -D "$folder/data" -A trust -U $who --no-sync -E UTF8 --locale C
	wait $server
	echo "initdb: $?"
	begin postgres -D "$folder/data" -h 127.0.0.1 -p "$port" -k "$folder" \
		-c shared_buffers=16MB -c fsync=off
	within 15 ready || fail "$mode: not ready"
	sql postgres 'create database shop'
	sql shop 'create table item (id serial primary key, name text, price int)'
	sql shop "insert into item (name, price) select 'thing ' || i, i % 97 from generate_series(1, 20000) i"
	sql shop 'create index on item (price)'
	sql shop 'select count(*), sum(price), max(name) from item where price between 10 and 20'
	sql shop 'select nothing from nowhere'
	for i in 1 2 3 4; do
		sql shop 'update item set price = price + 1 where id % 4 = 0' >/dev/null &
		updates="$updates $!"
	done
	for i in $updates; do wait $i; done
	sql shop 'vacuum analyze item'
	sql shop 'select sum(price) from item'
	[ "$mode" = native ] || as_user "$MVE" ps | grep -q "^$name .*running" ||
		fail "$mode: mve ps does not show it"
	finish INT
	begin postgres -D "$folder/data" -h 127.0.0.1 -p "$port" -k "$folder" -c fsync=off
	within 15 ready || fail "$mode: not ready again"
	sql shop 'select count(*) from item'
	finish INT
}

in_each_mode work
