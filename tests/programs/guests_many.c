/*
 * More children that share their parent's memory (clone with CLONE_VM) than a process may have
 * threads, one after the other: each ends as a process does, and is none any more.
 */
#include <sched.h>

#include "tests/programs/check.h"

#define CHILDREN	2500

static char stack[1 << 14] __attribute__((aligned(16)));

static int child(void *arg)
{
	syscall(SYS_exit_group, 3);
	return arg != NULL;
}

int main(void)
{
	int status;

	for (int i = 0; i < CHILDREN; i++) {
		pid_t pid = clone(child, stack + sizeof(stack), CLONE_VM | SIGCHLD, NULL);

		CHECK(pid > 0);
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 3);
	}
	return passed("guests_many");
}
