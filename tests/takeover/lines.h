/* A server on loopback that one client after another asks by lines; its port is the last word. */
#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

/* Returns where there is no such port, or no more clients. */
static int lines_serve(const char *port, void (*serve)(FILE *peer))
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) },
				 .sin_port = htons((uint16_t)atoi(port)) };
	int s = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(s, (void *)&a, sizeof(a)) || listen(s, 9))
		return 1;
	for (;;) {
		FILE *peer = fdopen(accept(s, NULL, NULL), "r+");

		if (!peer)
			return 1;
		serve(peer);
		fclose(peer);
	}
}
