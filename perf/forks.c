/*
 * A server that starts a process, or a program, for each request: perf/bench tells on
 * standard input how and how often, and reads on standard output what it took.
 *
 *	in	HOW COUNT PROGRAM	fork: the child ends; exec: it executes the program; spawn
 *	out	us of time, us of user and system time, of it and its children, for each
 *
 * A follower is given the leader's times, so that it prints the same.
 */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static double wall_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static double of_us(int who)
{
	struct rusage u;

	getrusage(who, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e6 +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static double cpu_us(void)
{
	return of_us(RUSAGE_SELF) + of_us(RUSAGE_CHILDREN);
}

static pid_t start(const char *how, char *program)
{
	char *argv[] = { program, NULL };
	pid_t pid;

	if (!strcmp(how, "spawn"))
		return posix_spawn(&pid, program, NULL, NULL, argv, environ) ? -1 : pid;
	pid = fork();
	if (pid)
		return pid;
	if (!strcmp(how, "exec"))
		execv(program, argv);
	_exit(strcmp(how, "fork") ? 127 : 0);
}

int main(void)
{
	char line[1024], how[16], program[900];
	int count, status;

	while (fgets(line, sizeof(line), stdin) &&
	       sscanf(line, "%15s %d %899s", how, &count, program) == 3 && count > 0) {
		double wall = wall_us(), cpu = cpu_us();

		for (int i = 0; i < count; i++) {
			pid_t pid = start(how, program);

			if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
				return 1;
		}
		printf("%.1f %.1f\n", (wall_us() - wall) / count, (cpu_us() - cpu) / count);
		fflush(stdout);
	}
	return 0;
}
