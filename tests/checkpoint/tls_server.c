/*
 * A server by OpenSSL with a bug, for tls.py: of one thread, with several connections.  It prints
 * its port.  "add N" and "get" are answered by the sum; "bug N" adds, too, but then dies; "add 13"
 * is answered before it does.  tls_server CERT KEY
 */
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PEERS	32

static long sum;
static int *volatile nowhere;
static SSL *peer[PEERS];
static struct pollfd waits[PEERS + 1];

static int listens(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (bind(fd, (void *)&at, size) || listen(fd, PEERS) ||
	    getsockname(fd, (void *)&at, &size))
		exit(1);
	printf("%d\n", ntohs(at.sin_port));
	fflush(stdout);
	return fd;
}

static void ends(int n)
{
	SSL_free(peer[n]);
	close(waits[n].fd);
	peer[n] = NULL;
	waits[n].fd = -1;
}

static void begins(SSL_CTX *context, int listener)
{
	int fd = accept(listener, NULL, NULL), n = 0;

	while (n < PEERS && peer[n])
		n++;
	if (fd < 0 || n == PEERS)
		exit(1);
	peer[n] = SSL_new(context);
	SSL_set_fd(peer[n], fd);
	waits[n] = (struct pollfd){ .fd = fd, .events = POLLIN };
	if (SSL_accept(peer[n]) != 1)
		ends(n);
}

static void serves(int n)
{
	char line[100], *number;
	int got = SSL_read(peer[n], line, sizeof(line) - 1), late;

	if (got <= 0) {
		ends(n);
		return;
	}
	line[got] = '\0';
	number = strchr(line, ' ');
	sum += number ? atol(number) : 0;
	if (!strncmp(line, "bug", 3))
		*nowhere = 1;
	late = !strncmp(line, "add 13", 6);
	snprintf(line, sizeof(line), "%ld\n", sum);
	SSL_write(peer[n], line, (int)strlen(line));
	if (late)
		*nowhere = 1;
}

int main(int argc, char **argv)
{
	SSL_CTX *context = SSL_CTX_new(TLS_server_method());

	if (argc != 3 || SSL_CTX_use_certificate_file(context, argv[1], SSL_FILETYPE_PEM) != 1 ||
	    SSL_CTX_use_PrivateKey_file(context, argv[2], SSL_FILETYPE_PEM) != 1)
		return 1;
	for (int n = 0; n < PEERS; n++)
		waits[n].fd = -1;
	waits[PEERS] = (struct pollfd){ .fd = listens(), .events = POLLIN };
	for (;;) {
		poll(waits, PEERS + 1, -1);
		if (waits[PEERS].revents)
			begins(context, waits[PEERS].fd);
		for (int n = 0; n < PEERS; n++)
			if (peer[n] && waits[n].revents)
				serves(n);
	}
}
