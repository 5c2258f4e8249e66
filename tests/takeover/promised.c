/* promised PORT N: a server of N processes that runs a program for each connection. */
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int program_run(void)
{
	int status = -1;
	pid_t pid = fork();

	if (!pid) {
		execl("/bin/true", "true", (char *)NULL);
		_exit(1);
	}
	waitpid(pid, &status, 0);
	return status;
}

int main(int argc, char **argv)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int s = socket(AF_INET, SOCK_STREAM, 0), one = 1;
	char text[32];

	if (argc != 3)
		return 2;
	a.sin_port = htons((uint16_t)atoi(argv[1]));
	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	for (int n = atoi(argv[2]); n > 0; n--)
		if (!fork()) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (;;)
				pause();
		}
	if (bind(s, (struct sockaddr *)&a, sizeof(a)) || listen(s, 64))
		return 1;
	for (;;) {
		int c = accept(s, NULL, NULL), n;

		if (c >= 0 && read(c, text, sizeof(text)) > 0) {
			n = snprintf(text, sizeof(text), "%d\n", program_run());
			if (write(c, text, (size_t)n) != n)
				return 1;
		}
		close(c);
	}
}
