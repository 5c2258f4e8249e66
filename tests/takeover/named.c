/*
 * named PORT: tells, as often as it is asked, by which ids it knows itself, its parent and a
 * child.  What asks is hot before anybody takes over: it is called many times.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define TIMES 3000

static long same(long nr)
{
	const long first = syscall(nr);

	for (int i = 0; i < TIMES; i++)
		if (syscall(nr) != first)
			return -1;
	return first;
}

/* A child knows its parent by the id that the parent knows. */
static int child_knows(void)
{
	const pid_t own = getpid(), pid = fork();
	int status;

	if (!pid)
		_exit(same(SYS_getppid) == own && same(SYS_getpid) != own ? 0 : 1);
	return waitpid(pid, &status, 0) == pid && !status;
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)atoi(argv[argc - 1])),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const int one = 1, s = socket(AF_INET, SOCK_STREAM, 0);
	char text[200], byte;

	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(s, (struct sockaddr *)&at, sizeof(at)) || listen(s, 8))
		return 1;
	for (;;) {
		const int c = accept(s, NULL, NULL);

		while (read(c, &byte, 1) == 1) {
			const int n = snprintf(text, sizeof(text), "%ld %ld %ld %d\n", same(SYS_getpid),
					       same(SYS_getppid), same(SYS_gettid), child_knows());

			if (write(c, text, (size_t)n) != n)
				return 1;
		}
		close(c);
	}
}
