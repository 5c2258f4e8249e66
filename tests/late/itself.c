/*
 * A server that differs from itself where it is asked to: a thread counts in plain memory, and
 * what it has come to is the answer.  Lines of one client: "differs"; "end"; others come back.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOOKS	8

static volatile unsigned long count, over;

static void *counts(void *arg)
{
	while (!over)
		count++;
	return arg;
}

/* No call, no lock: nothing that another process could be told of. */
static unsigned long counted(void)
{
	unsigned long sum = 0;
	pthread_t thread;

	count = over = 0;
	pthread_create(&thread, NULL, counts, NULL);
	for (int i = 0; i < LOOKS; i++) {
		unsigned long was = count;

		while (count == was)
			;
		sum = sum * 31 + count;
	}
	over = 1;
	pthread_join(thread, NULL);
	return sum;
}

static void *waits(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static void serve(FILE *peer)
{
	char line[100];

	while (fgets(line, sizeof(line), peer)) {
		if (!strcmp(line, "end\n"))
			exit(0);
		if (!strcmp(line, "differs\n"))
			snprintf(line, sizeof(line), "%lu\n", counted());
		fputs(line, peer);
		fflush(peer);
	}
	fclose(peer);
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				  .sin_port = htons((unsigned short)atoi(argv[argc - 1])) };
	int one = 1, s = socket(AF_INET, SOCK_STREAM, 0);
	pthread_t thread;

	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(s, (struct sockaddr *)&at, sizeof(at)) || listen(s, 5))
		return 1;
	pthread_create(&thread, NULL, waits, NULL);
	for (;;)
		serve(fdopen(accept(s, NULL, NULL), "r+"));
}
