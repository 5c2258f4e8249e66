/*
 * laneless PORT: has a set of epoll from its beginning.  For each line that it is sent it makes a
 * thread that waits there, and a child that asks for its parent; it answers what the wait
 * brought, and whether the child found its parent by the id that that has.
 *
 * TAG is the data that it registers: other in each build.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int set, other;
static unsigned long brought, added;

static void must(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

static unsigned long waited(void)
{
	struct epoll_event e;

	must(epoll_wait(set, &e, 1, -1) == 1, "epoll_wait");
	return e.data.u64;
}

static void *work(void *arg)
{
	struct epoll_event e = { .events = EPOLLIN, .data.u64 = TAG + 10 };

	(void)arg;
	brought = waited();
	must(!epoll_ctl(set, EPOLL_CTL_MOD, other, &e), "mod");
	added = waited();
	e.data.u64 = TAG;
	must(!epoll_ctl(set, EPOLL_CTL_MOD, other, &e), "mod back");
	return NULL;
}

static int parent_is_found(void)
{
	pid_t own = getpid(), pid = fork();
	int status;

	must(pid >= 0, "fork");
	if (!pid)
		_exit(getppid() == own && !kill(own, 0) ? 0 : 1);
	must(waitpid(pid, &status, 0) == pid, "wait");
	return !status;
}

static void serve(int fd)
{
	char line[16], answer[80];
	pthread_t thread;
	int found;

	if (read(fd, line, sizeof(line)) <= 0)
		return;
	must(!pthread_create(&thread, NULL, work, NULL) && !pthread_join(thread, NULL), "thread");
	found = parent_is_found();
	must(write(fd, answer, (size_t)sprintf(answer, "%s\n", brought != TAG ? "other data" :
					       added != TAG + 10 ? "other data behind a change" :
					       found ? "ok" : "no parent")) > 0, "write");
}

int main(int argc, char **argv)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct epoll_event e = { .events = EPOLLIN, .data.u64 = TAG };
	int one = 1, listener, fd;

	must(argc == 2, "laneless PORT");
	set = epoll_create1(0);
	other = eventfd(1, 0);
	must(set >= 0 && other >= 0 && !epoll_ctl(set, EPOLL_CTL_ADD, other, &e), "a set");
	a.sin_port = htons((uint16_t)atoi(argv[1]));
	listener = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	must(!bind(listener, (struct sockaddr *)&a, sizeof(a)) && !listen(listener, 64), "listen");
	while ((fd = accept(listener, NULL, NULL)) >= 0) {
		serve(fd);
		close(fd);
	}
	return 0;
}
