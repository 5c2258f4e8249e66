# CVE-2025-49844: Lua's parser holds the name of a chunk that nothing else holds.  A
# garbage collection while it parses frees it, and the next one looks at it: a
# reader function of load() that is asked once more after it said "no more" gets
# there.  Redis 7.0.15 as it was before Debian's first security patch.
server=redis without=0001-Apply-security-fixes-for-CVEs-1113.patch
report=heap-use-after-free function=traverseproto
alive='PING\r\n' reply=PONG

arguments()
{
	words="--port $port --bind 127.0.0.1 --dir $PWD --daemonize no"
	words="$words --enable-debug-command no --appendonly no"
}
