#!/bin/sh
# gdb and strace attach to a server that mve holds: the backtrace names what a
# native one's does, and the server goes on.
. "$ROOT/tests/servers/lib.sh"
need gdb strace redis-server redis-cli gcc

names()
{
	sed -n 's/^#[0-9]* *\(0x[0-9a-f]* in \)\?\([A-Za-z_][A-Za-z0-9_@.]*\) (.*/\2/p' "$1"
}

# Where in its loop Redis stands is chance, and the gate may show a frame of its own.
inspect()	# PID
{
	timeout 30 gdb -p "$1" -batch -nx -iex 'set debuginfod enabled off' \
		-ex bt -ex 'info threads' >gdb.out 2>gdb.err
	echo "gdb: $?"
	names gdb.out | grep -vxE 'epoll_wait|aeProcessEvents|serverCron|(gate|pass|slow|call)_.*'
}

trace()	# PID
{
	strace -f -p "$1" -o strace.out 2>strace.err &
	tracer=$!
	left $tracer
	within 30 grep -q attached strace.err
	shift
	"$@"
	sleep 0.2
	kill -INT $tracer
	wait $tracer
	grep -q 'write([0-9]*, "' strace.out && echo "strace saw the write"
}

ask()
{
	redis-cli -p "$port" ping
}

own()
{
	start "$top/waiter"
	within 30 grep -q ready server.log
	pid=$(server_pid)
	inspect "$pid"
	kill -USR1 "$pid"
	within 30 grep -q 'got it' server.log && echo "goes on"
	finish
	session_ended
}

work()
{
	own
	start redis-server --port "$port" --bind 127.0.0.1 --save ''
	up
	within 30 ask
	pid=$(server_pid)
	inspect "$pid"
	ask
	trace "$pid" ask
	ask
	inspect "$pid"
	redis-cli -p "$port" set a b
	held_all
	finish
}

cat >waiter.c <<'END'
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
static void on(int s) { (void)s; }
__attribute__((noinline)) int wait_for_it(void) { return poll(0, 0, -1) + 1; }
__attribute__((noinline)) int outer(void) { return wait_for_it() + 1; }
int main(void)
{
	struct sigaction a = { .sa_handler = on };
	sigaction(SIGUSR1, &a, 0);
	puts("ready");
	fflush(stdout);
	outer();
	puts("got it");
	fflush(stdout);
	for (;;)
		pause();
}
END
gcc -g -O1 -o waiter waiter.c || fail "gcc"
in_each_mode work
