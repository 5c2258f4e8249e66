/*
 * held PORT: for "threads" three threads begin to register and take back descriptors without
 * pause; for "forks" it forks, and each child does the same once.  It answers how many
 * children came to their end, of those that it made.
 *
 * TAG is data of a registration: other in each build.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS		3
#define FORKS		3000
#define CHILD_S		5

static void must(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

static void change(int set, int fd)
{
	struct epoll_event e = { .events = EPOLLIN, .data.u64 = TAG };

	must(!epoll_ctl(set, EPOLL_CTL_ADD, fd, &e), "add");
	must(!epoll_ctl(set, EPOLL_CTL_DEL, fd, &e), "del");
}

static void *work(void *arg)
{
	int set = epoll_create1(0), fd = eventfd(0, 0);

	(void)arg;
	must(set >= 0 && fd >= 0, "a set");
	for (;;)
		change(set, fd);
	return NULL;
}

/* One that hangs is ended by its alarm. */
static int child_came(void)
{
	pid_t pid = fork();
	int status;

	must(pid >= 0, "fork");
	if (!pid) {
		int set, fd;

		alarm(CHILD_S);
		set = epoll_create1(0);
		fd = eventfd(0, 0);
		change(set, fd);
		close(fd);
		_exit(0);
	}
	must(waitpid(pid, &status, 0) == pid, "wait");
	return status == 0;
}

static void threads_begin(void)
{
	pthread_t thread;

	for (int i = 0; i < THREADS; i++)
		must(!pthread_create(&thread, NULL, work, NULL), "thread");
}

static void serve(int fd)
{
	char line[16], answer[32];
	int came = 0, made = 0;

	if (read(fd, line, sizeof(line)) <= 0)
		return;
	if (line[0] == 't')
		threads_begin();
	while (line[0] == 'f' && made < FORKS && came == made) {
		made++;
		came += child_came();
	}
	must(write(fd, answer, (size_t)sprintf(answer, "%d of %d\n", came, made)) > 0, "write");
}

int main(int argc, char **argv)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int one = 1, listener, fd;

	must(argc == 2, "held PORT");
	a.sin_port = htons((uint16_t)atoi(argv[1]));
	listener = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	must(!bind(listener, (struct sockaddr *)&a, sizeof(a)) && !listen(listener, 64), "listen");
	change(epoll_create1(0), eventfd(0, 0));
	while ((fd = accept(listener, NULL, NULL)) >= 0) {
		serve(fd);
		close(fd);
	}
	return 0;
}
