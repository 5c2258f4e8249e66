/*
 * A rehearsal: the new state is made in a copy of the process, by fork, while the server goes
 * on.  What the user's C dies of, and what the walk behind it finds, is known before anything
 * of the server's is touched; and the server stands only for the fork.
 *
 * The copy has one thread, no signal tells of its end, and it is gone when this returns.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/update/control.h"

/* Limit (live update): seconds for a rehearsal. Beyond: it is ended, the update refused. */
#define REHEARSAL_S	600
#define PART_SIZE	4096

static __attribute__((noreturn)) void copy_run(struct migration *m, int to)
{
	FILE *file = fdopen(to, "w");
	bool ok;

	if (!file)
		_exit(UPDATE_REFUSED);
	ok = update_plan(m) && update_fill(m);
	if (ok)
		migration_tell(m, file);
	else
		fprintf(file, "%s", m->why);
	fflush(file);
	_exit(ok ? UPDATE_DONE : m->later ? UPDATE_LATER : UPDATE_REFUSED);
}

/* Like fork(), and nobody is sent SIGCHLD: the server may wait for children of its own. */
static pid_t copy_make(void)
{
	return (pid_t)syscall(SYS_clone, 0, NULL, NULL, NULL, NULL);
}

bool rehearsal_begin(struct rehearsal *r, struct migration *m)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return wrong(m, "no pipe for a rehearsal: %s", strerror(errno));
	r->pid = copy_make();
	if (!r->pid) {
		close(ends[0]);
		copy_run(m, ends[1]);
	}
	close(ends[1]);
	r->from = ends[0];
	if (r->pid > 0)
		return true;
	close(ends[0]);
	return wrong(m, "no copy for a rehearsal: %s", strerror(errno));
}

/* All that it says; false: it took too long. */
static bool listen_to(const struct rehearsal *r, FILE *to)
{
	struct pollfd p = { .fd = r->from, .events = POLLIN };
	char part[PART_SIZE];
	ssize_t n;

	for (;;) {
		int ready = poll(&p, 1, REHEARSAL_S * 1000);

		if (ready < 0 && errno == EINTR)
			continue;
		if (ready <= 0)
			return false;
		n = read(r->from, part, sizeof(part));
		if (n <= 0)
			return true;
		fwrite(part, 1, (size_t)n, to);
	}
}

static int end_of(const struct rehearsal *r)
{
	int status;

	while (waitpid(r->pid, &status, __WCLONE) < 0)
		if (errno != EINTR)
			return -1;
	return status;
}

enum update_end rehearsal_end(struct rehearsal *r, FILE *tell, char *why, size_t size)
{
	char *said = NULL;
	size_t n = 0;
	FILE *to = open_memstream(&said, &n);
	bool in_time = to && listen_to(r, to);
	int status;

	if (!in_time)
		kill(r->pid, SIGKILL);
	status = end_of(r);
	close(r->from);
	if (to)
		fclose(to);
	if (in_time && WIFEXITED(status) && WEXITSTATUS(status) == UPDATE_DONE)
		fputs(said, tell);
	else if (!in_time)
		snprintf(why, size, "the rehearsal took more than %d s", REHEARSAL_S);
	else if (WIFSIGNALED(status))
		snprintf(why, size, "the transformation died of signal %d (%s) in the rehearsal",
			WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		snprintf(why, size, "%s", said);
	free(said);
	return !in_time || !WIFEXITED(status) ? UPDATE_REFUSED : WEXITSTATUS(status);
}
