/*
 * Runs a program twice: its first run is taken back, so the second must be as the first. Its object
 * has first_main and first_exit in the place of main and exit, and is linked to this.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <mve/checkpoint.h>

int first_main(int argc, char **argv, char **environment);
void first_exit(int status) __attribute__((noreturn));

/* As told before a restore: in a pipe, for memory forgets it. */
static int told[2];
static int second;

static void wrong(const char *what)
{
	fprintf(stderr, "twice: %s: %s\n", what, mve_checkpoint_why());
	_exit(99);
}

static void tell(int status)
{
	if (write(told[1], &status, sizeof(status)) != sizeof(status))
		_exit(99);
}

static int heard(void)
{
	int status;

	if (read(told[0], &status, sizeof(status)) != sizeof(status))
		_exit(99);
	return status;
}

void first_exit(int status)
{
	if (second) {
		if (heard() != (status & 0xff))
			wrong("ended otherwise");
		exit(status);
	}
	fflush(NULL);
	tell(status & 0xff);
	mve_checkpoint_restore();
	wrong("not restored");
	_exit(99);
}

int main(int argc, char **argv, char **environment)
{
	sigset_t mask;
	int got;

	if (pipe(told) || sigprocmask(SIG_SETMASK, NULL, &mask))
		return 99;
	got = mve_checkpoint_open();
	if (got < 0)
		wrong("not opened");
	/* The kernel's, and so as the first run left it: blocked, where that ended in a handler. */
	sigprocmask(SIG_SETMASK, &mask, NULL);
	second = got;
	first_exit(first_main(argc, argv, environment));
}
