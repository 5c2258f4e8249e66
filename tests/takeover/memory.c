/*
 * A server whose state is a memfd: one count that it changes by memory, one by pwrite.
 * Each request raises both, and tells what memory and what the descriptor say of them; a
 * child that shares the memory raises a third.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIZE	4096

static void answer(int client, int fd, volatile long *memory)
{
	long by_call, seen[3] = { -1, -1, -1 };
	char line[200];
	int n;

	memory[0]++;
	by_call = memory[1] + 1;
	pwrite(fd, &by_call, sizeof(by_call), sizeof(long));
	if (!fork()) {
		memory[2]++;
		_exit(0);
	}
	wait(NULL);
	pread(fd, seen, sizeof(seen), 0);
	n = snprintf(line, sizeof(line), "%ld %ld %ld, %ld %ld %ld\n", memory[0], memory[1],
		     memory[2], seen[0], seen[1], seen[2]);
	write(client, line, (size_t)n);
}

/* The signal that ends the leader may end its read first. */
static int got(int client)
{
	char c;
	ssize_t n;

	while ((n = read(client, &c, 1)) < 0 && errno == EINTR)
		;
	return n == 1;
}

int main(int argc, char **argv)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(atoi(argv[argc - 1])),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int s = socket(AF_INET, SOCK_STREAM, 0), one = 1, fd = memfd_create("state", MFD_CLOEXEC);
	volatile long *memory;

	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (fd < 0 || ftruncate(fd, SIZE) || bind(s, (void *)&a, sizeof(a)) || listen(s, 10))
		return 1;
	memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		return 2;
	for (int client; (client = accept(s, NULL, NULL)) >= 0; close(client))
		while (got(client))
			answer(client, fd, memory);
	return 0;
}
