/*
 * daemon TIMES PIDFILE PROGRAM [ARG...]: starts a program as classic servers start themselves:
 * two forks and a session of its own, and the process that was called has ended.  The pid of
 * the program is in PIDFILE.  Before, TIMES times over, the process that is left forks another,
 * which executes this again: whoever looks finds one that has just begun, or is in an execve.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int again(unsigned long times, char **argv)
{
	char left[24];

	if (fork())
		return 0;
	snprintf(left, sizeof(left), "%lu", times - 1);
	argv[1] = left;
	execv(argv[0], argv);
	return 1;
}

int main(int argc, char **argv)
{
	unsigned long times = argc < 4 ? 0 : strtoul(argv[1], NULL, 10);
	FILE *f;
	int null;

	if (times)
		return again(times, argv);
	if (argc < 4 || fork())
		return argc < 4;
	setsid();
	if (fork())
		_exit(0);
	umask(022);
	f = fopen(argv[2], "w");
	if (!f || fprintf(f, "%d\n", getpid()) < 0 || fclose(f))
		return 1;
	null = open("/dev/null", O_RDWR);
	for (int fd = 0; fd < 3; fd++)
		dup2(null, fd);
	close(null);
	execv(argv[3], argv + 3);
	return 1;
}
