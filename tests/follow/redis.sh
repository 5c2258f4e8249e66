#!/bin/sh
# Redis with its two kinds of persistence: clients that check, beside Redis' own
# benchmark with pipelines and up to 1,000 connections.
# A snapshot tells how much memory is used when it forks: no thread may have a job
# then that it frees in its own time (a sync each second, a file to be closed
# before a rewrite, whose file would begin with a snapshot).
. "$ROOT/tests/follow/lib.sh"
need redis-server redis-benchmark python3

# Two releases save in their own ways, and one has commands that the other has not.
release=
if [ -n "$oldest" ]; then
	release="100 $oldest"
	echo 'save ""' >saving.conf
else
	echo 'save 3600 1
appendonly yes
appendfsync always
auto-aof-rewrite-percentage 0
aof-use-rdb-preamble no' >saving.conf
fi

bench()
{
	redis-benchmark -p "$port" --csv "$@" >>bench.csv 2>bench.err ||
		trouble "redis-benchmark: $(cat bench.err)"
}

# The third word: so many threads read and write for the clients.
threads=${3:+--io-threads $3 --io-threads-do-reads yes}
# shellcheck disable=SC2086 # words
lead redis-server "$folder/saving.conf" $threads --port "$port" --bind 127.0.0.1 --dir "$folder" --maxclients 4000
up
end=$(($(date +%s) + seconds))
# shellcheck disable=SC2086 # words
client redis_load "$port" "$seconds" $release
while [ "$(date +%s)" -lt $((end - 2)) ]; do
	bench -n 10000 -c 50 -P 16 -t set,get,incr,lpush,rpop,sadd,hset,spop,zadd,zpopmin,mset
	bench -n 2000 -c 1000 -t set,get
	bench -n 2000 -c 200 -P 4 -t lpush,lrange_100 -r 1000
done
clients_end
leave "$(cat redis_load.out) requests and $(grep -vc rps bench.csv) rounds of redis-benchmark"
