/* A server of N processes, which answers by how many there are: many PORT N. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <signal.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[1])),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int n = atoi(argv[argc - 1]), made = 0, one = 1, s = socket(AF_INET, SOCK_STREAM, 0);
	char text[32];

	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	for (; made < n; made++) {
		pid_t pid = fork();

		if (pid < 0)
			break;
		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (;;)
				pause();
		}
	}
	if (bind(s, (struct sockaddr *)&a, sizeof(a)) || listen(s, 64))
		return 1;
	for (;;) {
		int c = accept(s, NULL, NULL);

		if (c < 0)
			continue;
		snprintf(text, sizeof(text), "%d\n", made);
		if (write(c, text, strlen(text)) < 0)
			return 1;
		close(c);
	}
}
