/*
 * forker PORT: a process for each connection.  It counts its requests in memory that all share,
 * whose name is one of mve's own, in a row of its own; when it has been waited for its parent
 * adds that to what the next ones begin with.  A request is a line; the answer is its number, and
 * what others had at first.  It hears of an end only while it waits, so
 * that none stays unheard until the next connection.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROWS	256

static struct row { pid_t pid; unsigned long requests; } *row;
static unsigned long before;

static void serve(int fd, struct row *own)
{
	char line[256], answer[64];
	ssize_t n;

	while ((n = read(fd, line, sizeof(line))) > 0) {
		int len = snprintf(answer, sizeof(answer), "%lu %lu\n", ++own->requests, before);

		if (write(fd, answer, (size_t)len) != len)
			break;
	}
	_exit(n < 0);
}

static void reap(void)
{
	pid_t pid;

	while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
		for (int i = 0; i < ROWS; i++)
			if (row[i].pid == pid) {
				before += row[i].requests;
				row[i] = (struct row){ 0 };
			}
}

static void begin(int fd)
{
	struct row *own = row;
	pid_t pid;

	while (own->pid)
		own++;
	pid = fork();
	if (!pid)
		serve(fd, own);
	own->pid = pid;
	close(fd);
}

static void ended(int sig)
{
	(void)sig;
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sigaction act = { .sa_handler = ended };
	int s = socket(AF_INET, SOCK_STREAM, 0), on = 1, memory = memfd_create("mve-area", 0);
	struct pollfd comes = { .fd = s, .events = POLLIN };
	sigset_t child, none;

	at.sin_port = htons((unsigned short)atoi(argv[argc - 1]));
	if (ftruncate(memory, ROWS * sizeof(*row)) < 0)
		return 1;
	row = mmap(NULL, ROWS * sizeof(*row), PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	sigemptyset(&none);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	sigaction(SIGCHLD, &act, NULL);
	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (row == MAP_FAILED || bind(s, (struct sockaddr *)&at, sizeof(at)) || listen(s, 64))
		return 1;
	for (;;) {
		int n = ppoll(&comes, 1, NULL, &none);

		reap();
		if (n > 0)
			begin(accept(s, NULL, NULL));
	}
}
