/*
 * A server whose children share its memory, but not its descriptors: under the same numbers
 * each has files of its own, and says at its own socket what stands in them: guests PORT.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define GUESTS	20	/* more than a table of them once had room for */
#define FILES	200	/* of each second one: the next takes while it still puts them in place */
#define FEW	2

static const char *port;
static char stack[GUESTS][65536] __attribute__((aligned(16)));

static int listener(long who)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int s = socket(AF_UNIX, SOCK_STREAM, 0);
	int n = snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, "guests-%s-%ld", port, who);

	if (bind(s, (void *)&a, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n)) ||
	    listen(s, 8))
		_exit(1);
	return s;
}

static int files_of(long who)
{
	return who % 2 ? FEW : FILES;
}

static void files_say(int c, const int *fd, int n)
{
	char text[64];

	for (int i = 0; i < n; i++) {
		ssize_t len = pread(fd[i], text, sizeof(text), 0);

		if (len <= 0 || write(c, text, (size_t)len) != len)
			break;
	}
	close(c);
}

static int guest(void *arg)
{
	int s = listener((long)arg), fd[FILES], files = files_of((long)arg);
	char text[64];

	for (int i = 0; i < files; i++) {
		int n = snprintf(text, sizeof(text), "file %d of guest %ld\n", i, (long)arg);

		fd[i] = memfd_create("file", 0);
		if (write(fd[i], text, (size_t)n) != n)
			_exit(1);
	}
	for (;;)
		files_say(accept(s, NULL, NULL), fd, files);
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int s = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	port = argv[argc - 1];
	at.sin_port = htons((uint16_t)atoi(port));
	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	for (long i = 0; i < GUESTS; i++)
		if (clone(guest, stack[i] + sizeof(stack[i]), CLONE_VM | SIGCHLD, (void *)i) < 0)
			return 1;
	if (bind(s, (void *)&at, sizeof(at)) || listen(s, 8))
		return 1;
	for (;;)
		close(accept(s, NULL, NULL));
}
