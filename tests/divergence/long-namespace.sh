#!/bin/sh
# A child that is the first process of a pid namespace, and of a user's own, and differs
# there: its report has the call, the byte and the line as any other's.
. "$ROOT/tests/lib.sh"

cat >child.c <<'EOF'
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char stack[65536];

static int child(void *text)
{
	write(1, text, strlen(text));
	return getpid() == 1 ? 0 : 9;
}

int main(int argc, char **argv)
{
	int status = 1;
	int pid = clone(child, stack + sizeof(stack), CLONE_NEWUSER | CLONE_NEWPID | SIGCHLD,
			argc > 1 ? "the other\n" : "the right\n");

	(void)argv;
	if (pid < 0)
		return 77;
	return waitpid(pid, &status, 0) != pid || status;
}
EOF
gcc -O1 -g -w -o child child.c || fail "gcc"
./child >native
[ $? = 77 ] && skip "no user namespaces"
"$MVE" run -n "$MVE_SESSION" -f same -- ./child >out 2>err || fail "same: status $?: $(cat err)"
# It is said that nobody leads while a process is there, and nothing else.
grep -q "makes a pid namespace" err || fail "same: not a word of the namespace: $(cat err)"
! grep -v -e "makes a pid namespace" -e "hint: what is compared is" err >rest || fail "same: $(cat rest)"
cmp -s native out || fail "same: $(cat out err)"
"$MVE" run -n "$MVE_SESSION" -f './child other' -- ./child >out 2>err || fail "status $?: $(cat err)"
grep -q 'diverged: write(1, "the other\\n", 10) .* at byte 4: child at child.c:12' err ||
	fail "other: $(cat err)"
cmp -s native out || fail "other: $(cat out)"
clean
echo "namespace: ok"
