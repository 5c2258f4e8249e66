/*
 * The way of fork: a child for each checkpoint waits, as memory was.  Restoring lets it go on and
 * ends the parent; so the process is another afterwards, and a server's parent would have to know.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "engine/checkpoint/ways/ways.h"

/* How long its parent waits for a child that has been let go. */
#define WAKES_MS	10000

/* In the child, once it is let go: as after a restore of the level. */
static void child(struct level *level, int waits)
{
	char byte;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (read(waits, &byte, 1) != 1)
		_exit(0);
	prctl(PR_SET_PDEATHSIG, 0);
	close(waits);
	state->counts.restored++;
	checkpoint_jump(&level->jump, 1);
}

int fork_open(struct level *level)
{
	int ends[2];

	if (pipe(ends))
		return fail(errno, "no pipe");
	level->child = fork();
	if (level->child == 0) {
		close(ends[1]);
		child(level, ends[0]);
	}
	close(ends[0]);
	level->wakes = ends[1];
	return level->child < 0 ? fail(errno, "no fork") : 0;
}

void fork_restore(const struct level *level)
{
	struct pollfd end = { .fd = level->wakes };

	if (write(level->wakes, "", 1) == 1)
		poll(&end, 1, WAKES_MS);	/* it closes its end once it outlives us */
	_exit(0);
}

void fork_drop(const struct level *level)
{
	kill(level->child, SIGKILL);
	waitpid(level->child, NULL, 0);
	close(level->wakes);
}
