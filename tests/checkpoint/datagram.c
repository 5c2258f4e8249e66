/*
 * A server with a bug whose requests are datagrams, for rollback.py: nobody is accepted, and what
 * comes is brought by recvmsg.  It prints its port.  "add N" is answered by the sum, and "bug N"
 * adds, too, but then dies.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static long sum, lost;
static int *volatile nowhere;

static int listens(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(at);
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	if (bind(fd, (void *)&at, size) || getsockname(fd, (void *)&at, &size))
		exit(1);
	printf("%d\n", ntohs(at.sin_port));
	fflush(stdout);
	return fd;
}

static void serve(int fd, const char *word, long n, const struct msghdr *message)
{
	char text[60];

	sum += n;
	if (!strncmp(word, "bug", 3))
		*nowhere = 1;
	snprintf(text, sizeof(text), "%ld %ld", sum, lost);
	if (sendto(fd, text, strlen(text), 0, message->msg_name, message->msg_namelen) < 0)
		perror("sendto");
}

int main(void)
{
	int fd = listens();

	for (;;) {
		char word[4] = "", digits[20] = "";
		struct sockaddr_in from;
		struct iovec parts[2] = { { word, sizeof(word) }, { digits, sizeof(digits) - 1 } };
		struct msghdr message = { .msg_name = &from, .msg_namelen = sizeof(from),
					  .msg_iov = parts, .msg_iovlen = 2 };

		if (recvmsg(fd, &message, 0) > 0)
			serve(fd, word, atol(digits), &message);
		else if (errno == ECONNRESET)
			lost++;
		else
			return 1;
	}
}
