/*
 * daemon PIDFILE PROGRAM [ARG...]: starts a program as classic servers start themselves: two
 * forks and a session of its own, and the process that was called has ended.  The pid of the
 * program is in PIDFILE.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	FILE *f;
	int null;

	if (argc < 3 || fork())
		return argc < 3;
	setsid();
	if (fork())
		_exit(0);
	umask(022);
	f = fopen(argv[1], "w");
	if (!f || fprintf(f, "%d\n", getpid()) < 0 || fclose(f))
		return 1;
	null = open("/dev/null", O_RDWR);
	for (int fd = 0; fd < 3; fd++)
		dup2(null, fd);
	close(null);
	execv(argv[2], argv + 2);
	return 1;
}
