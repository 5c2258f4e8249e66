/*
 * A small server with a planted fault, to be found by a follower:
 *
 *	mve run -f './differ FAULT' -- ./differ none
 *	... differ FAULT [ROUNDS [thread|child]]
 *
 * It serves three clients over socket pairs, all in one thread, and writes a log.
 * The faulty version differs at one place in round ROUND; the line that the report
 * must name has a comment `fault: NAME`.  With `thread` or `child` all of it happens
 * in a second thread or a forked process.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define CLIENTS	3
#define ROUND	5

static const char *fault;
static long rounds = 12;
static int server[CLIENTS], client[CLIENTS], log_fd;
static long turn;	/* the round that runs */

static bool faulty(const char *name)
{
	return turn == ROUND && !strcmp(fault, name);
}

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

static void kv_reply(int who, const char *value)
{
	char text[128];
	int n = snprintf(text, sizeof(text), "$%zu\r\n%s\r\n", strlen(value), value);
	int fd = server[who];
	ssize_t sent;

	if (faulty("byte"))
		text[12] ^= 0x20;
	if (faulty("short"))
		n -= 2;
	if (faulty("fd"))
		fd = server[(who + 1) % CLIENTS];
	sent = write(fd, text, (size_t)n);	/* fault: byte, fault: short, fault: fd */
	must(sent == n, "reply");
	if (faulty("extra"))
		sent = write(fd, "more\r\n", 6);	/* fault: extra */
}

static void log_line(const char *head, const char *text)
{
	struct iovec v[3] = {
		{ (void *)head, strlen(head) }, { (void *)text, strlen(text) }, { "\n", 1 },
	};

	if (faulty("vector"))
		v[1].iov_base = "value nO. 5";
	if (faulty("length"))
		v[2].iov_len = 0;
	must(writev(log_fd, v, 3) > 0, "log");	/* fault: vector, fault: length */
}

static void file_put(const char *text)
{
	size_t n = strlen(text);

	if (faulty("file"))
		text = "round 5: state of the art\n";
	must(pwrite(log_fd, text, n, 4096) >= 0, "file");	/* fault: file */
}

static void crash(void)
{
	int *volatile nowhere = (int *)16;

	*nowhere = 1;	/* fault: crash */
}

static void hang(void)
{
	volatile long n = 0;

	for (;; n++)	/* fault: hang */
		;
}

static void serve(int who)
{
	char request[64], value[96], state[96];
	ssize_t n = read(server[who], request, sizeof(request) - 1);	/* fault: missing */

	must(n > 0, "request");
	request[n] = 0;
	snprintf(value, sizeof(value), "value no. %s", request);
	snprintf(state, sizeof(state), "round %s: state of play\n", request);
	if (faulty("crash"))
		crash();
	if (faulty("hang"))
		hang();
	if (faulty("abort"))
		abort();	/* fault: abort */
	if (faulty("missing"))
		return;
	if (faulty("order"))
		file_put(state);	/* fault: order */
	kv_reply(who, value);
	log_line("said: ", value);
	if (!faulty("order"))
		file_put(state);
}

static void ask(int who, const char *request)
{
	must(write(client[who], request, strlen(request)) > 0, "ask");
}

static void take(int who)
{
	char reply[256];

	must(read(client[who], reply, sizeof(reply)) > 0, "reply");
}

/* All clients ask before one is served, so that a reply can be missing for a while. */
static void one_round(void)
{
	char request[24];

	snprintf(request, sizeof(request), "%ld", turn);
	for (int i = 0; i < CLIENTS; i++)
		ask(i, request);
	for (int i = 0; i < CLIENTS; i++)
		serve(i);
	for (int i = 0; i < CLIENTS; i++)
		take(i);
}

static void *all_rounds(void *unused)
{
	for (turn = 1; turn <= rounds; turn++)
		one_round();
	return unused;
}

static void in_thread(void)
{
	pthread_t t;

	must(!pthread_create(&t, NULL, all_rounds, NULL), "thread");
	must(!pthread_join(t, NULL), "join");
}

static void in_child(void)
{
	int status;
	pid_t pid = fork();

	must(pid >= 0, "fork");
	if (!pid) {
		all_rounds(NULL);
		_exit(0);
	}
	must(waitpid(pid, &status, 0) == pid && !status, "child");
}

int main(int argc, char **argv)
{
	const char *where = argc > 3 ? argv[3] : "";

	fault = argc > 1 ? argv[1] : "none";
	rounds = argc > 2 ? atol(argv[2]) : rounds;
	log_fd = open("differ.log", O_RDWR | O_CREAT | O_TRUNC, 0644);
	must(log_fd >= 0, "differ.log");
	for (int i = 0; i < CLIENTS; i++) {
		int pair[2];

		must(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "socketpair");
		server[i] = pair[0];
		client[i] = pair[1];
	}
	if (!strcmp(where, "thread"))
		in_thread();
	else if (!strcmp(where, "child"))
		in_child();
	else
		all_rounds(NULL);
	puts("differ: ok");
	return 0;
}
