/*
 * A small server for musl.sh: a detached thread answers each connection; /fork
 * answers from a child process.  SIGTERM ends it with 6.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void answer(int fd, const char *who)
{
	char text[200], head[200];
	int n = snprintf(text, sizeof(text), "hello from musl, %s\n", who);
	int h = snprintf(head, sizeof(head),
			 "HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n", n);

	if (write(fd, head, (size_t)h) != h || write(fd, text, (size_t)n) != n)
		perror("write");
}

static void *serve(void *arg)
{
	int fd = (int)(long)arg, status;
	char line[2000] = "";
	ssize_t n = read(fd, line, sizeof(line) - 1);

	if (n > 0 && !strncmp(line, "GET /fork", 9)) {
		pid_t child = fork();

		if (child == 0) {
			answer(fd, "a child");
			_exit(0);
		}
		waitpid(child, &status, 0);
	} else if (n > 0) {
		answer(fd, "a thread");
	}
	shutdown(fd, SHUT_WR);
	while (read(fd, line, sizeof(line)) > 0)
		;
	close(fd);
	return NULL;
}

static void stop(int sig)
{
	(void)sig;
	_exit(6);
}

int main(int argc, char **argv)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	signal(SIGTERM, stop);
	signal(SIGPIPE, SIG_IGN);
	a.sin_port = htons((uint16_t)atoi(argc > 1 ? argv[1] : "0"));
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)) || listen(fd, 64))
		return perror("bind"), 1;
	for (;;) {
		long client = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
		pthread_t t;

		if (client >= 0 && !pthread_create(&t, NULL, serve, (void *)client))
			pthread_detach(t);
	}
}
