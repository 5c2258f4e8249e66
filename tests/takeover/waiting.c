/* waiting HOW FILE: what the monitor has much to do with; see waiting.py. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *file;

static void *map(void *unused)
{
	int fd = open(file, O_RDONLY);

	puts("begins");
	if (mmap(NULL, (size_t)lseek(fd, 0, SEEK_END), PROT_READ | PROT_EXEC, MAP_PRIVATE, fd,
		 0) == MAP_FAILED)
		perror(file);
	puts("over");
	return unused;
}

/* So many programs begin at once. */
static void begin(int n)
{
	char path[4096];

	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s.%d", file, i);
		if (!fork()) {
			execl(path, path, (char *)NULL);
			_exit(1);
		}
	}
}

static int many(int n)
{
	int status, wrong = 0;

	begin(n);
	while (wait(&status) > 0)
		wrong |= !WIFEXITED(status) || WEXITSTATUS(status) != 7;
	return wrong;
}

/* Many begin; then another one, which is to be over before them; then how they ended. */
static void crowd(int n, const char *other)
{
	int status, failed = 0;
	pid_t pid;

	begin(n);
	getchar();
	pid = fork();
	if (!pid) {
		execl(other, other, (char *)NULL);
		_exit(1);
	}
	waitpid(pid, &status, 0);
	printf("the other: %d\n", WEXITSTATUS(status));
	while (wait(&status) > 0)
		failed += WIFEXITED(status) && WEXITSTATUS(status) == 1;
	printf("failed: %d\n", failed);
}

int main(int argc, char **argv)
{
	pthread_t thread;

	if (argc < 3)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	file = argv[2];
	if (!strcmp(argv[1], "many"))
		return many(atoi(argv[3]));
	if (!strcmp(argv[1], "crowd"))
		crowd(atoi(argv[3]), argv[4]);
	if (!strcmp(argv[1], "map"))
		map(NULL);
	for (int i = 0; !strcmp(argv[1], "calls") && i < 3000; i++)
		getppid();
	if (!strcmp(argv[1], "exec")) {
		puts("begins");
		execl(file, file, (char *)NULL);
	}
	if (strcmp(argv[1], "crash") && strcmp(argv[1], "stay"))
		return 0;
	pthread_create(&thread, NULL, map, NULL);
	getchar();
	if (!strcmp(argv[1], "crash"))
		*(volatile int *)0 = 1;
	pthread_join(thread, NULL);
	puts("the follower has come to its end");
	return 0;
}
