#!/bin/sh
# Redis: commands of every family, a Lua script, a benchmark, snapshots by fork,
# the append-only file, and a restart from it.
. "$ROOT/tests/servers/lib.sh"
need redis-server redis-cli redis-benchmark python3

cli()
{
	redis-cli -p "$port" "$@"
}

begin()
{
	start redis-server --port "$port" --bind 127.0.0.1 --dir "$folder" \
		--appendonly yes --save '60 100000' --io-threads "${1:-1}"
	up
	within 10 sh -c "redis-cli -p $port ping | grep -q PONG" || fail "no PONG"
}

talk()
{
	cli set greeting hello
	cli append greeting ' world'
	cli get greeting
	cli incrby count 41
	cli incr count
	cli lpush list a b c d
	cli lrange list 0 -1
	cli hset hash one 1 two 2
	cli hget hash two
	cli zadd sorted 3 c 1 a 2 b
	cli zrange sorted 0 -1 withscores
	cli setrange big 100000 end
	cli strlen big
	cli set short gone px 50
	sleep 0.1
	cli get short
	cli eval 'redis.call("set", "lua", 7) return redis.call("get", "lua")' 0
	printf 'multi\nset in-multi 1\nincr in-multi\nexec\n' | cli
	cli nonsense 2>&1
}

saved()
{
	cli info persistence | grep -q 'rdb_bgsave_in_progress:0'
}

work()
{
	begin 1
	talk
	redis-benchmark -p "$port" -q -n 1000 -t set >/dev/null
	held_from
	redis-benchmark -p "$port" -q -n 20000 -c 20 -P 4 -t set,get,lpush,lrange_100 \
		>bench.txt || fail "redis-benchmark"
	held_all
	cli bgsave
	within 10 saved || fail "bgsave does not end"
	cli info persistence | grep -a rdb_last_bgsave_status
	test -s dump.rdb || fail "no dump"
	cli bgrewriteaof
	within 10 sh -c "redis-cli -p $port info persistence | grep -q aof_rewrite_in_progress:0"
	cli info persistence | grep -a aof_last_bgrewrite_status
	finish
	session_ended
	begin 4
	cli get greeting
	cli dbsize
	cli shutdown nosave
	finished
}

in_each_mode work
