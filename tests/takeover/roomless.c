/*
 * roomless PORT: forks for each connection; the child allows itself no more descriptors, as
 * sandboxes do, and echoes lines.  The first line says how: "hard", for good; or "soft".
 */
#include <arpa/inet.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define HIGH	300	/* where other descriptors would not come */

static void echo(int fd)
{
	struct rlimit none, now;
	char line[512];
	ssize_t n = read(fd, line, sizeof(line));

	if (n < 4 || dup2(fd, HIGH) < 0 || close(fd) || write(HIGH, line, (size_t)n) != n ||
	    getrlimit(RLIMIT_NOFILE, &none))
		_exit(4);
	none.rlim_cur = 0;
	if (!memcmp(line, "hard", 4))
		none.rlim_max = 0;
	if (setrlimit(RLIMIT_NOFILE, &none))
		_exit(1);
	while ((n = read(HIGH, line, sizeof(line))) > 0) {
		if (getrlimit(RLIMIT_NOFILE, &now) || now.rlim_cur || now.rlim_max != none.rlim_max)
			_exit(2);
		if (dup(HIGH) >= 0)
			_exit(5);
		if (write(HIGH, line, (size_t)n) != n)
			_exit(3);
	}
	_exit(0);
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int listening = socket(AF_INET, SOCK_STREAM, 0);

	if (argc != 2)
		return 2;
	at.sin_port = htons((uint16_t)atoi(argv[1]));
	signal(SIGCHLD, SIG_IGN);
	if (bind(listening, (void *)&at, sizeof(at)) || listen(listening, 16))
		return 1;
	for (;;) {
		int fd = accept(listening, NULL, NULL);

		if (fd >= 0 && !fork()) {
			close(listening);
			echo(fd);
		}
		close(fd);
	}
}
