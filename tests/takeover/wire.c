/*
 * A server by lines for wire.py:	wire PORT fragile|sound
 *
 * "crash": a fragile one does.  "fork": a child that waits for its end.  "open N": so many files
 * more.  "chdir PATH", "lock PATH" (all of it, for writing).  Each is answered by "ok";
 * "where" by the working directory.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int lock(const char *path)
{
	struct flock all = { .l_type = F_WRLCK };
	int fd = open(path, O_RDWR | O_CREAT, 0600);

	return fcntl(fd, F_SETLK, &all);
}

static int open_more(int n)
{
	while (n-- > 0)
		if (open("/dev/null", O_RDONLY | O_CLOEXEC) < 0)
			return -1;
	return 0;
}

static int serve(char *line, const char *how, char *answer, size_t size)
{
	char *what = strchr(line, ' ');

	if (what)
		*what++ = 0;
	snprintf(answer, size, "ok");
	if (!strcmp(line, "crash") && !strcmp(how, "fragile"))
		*(volatile int *)0 = 1;
	if (!strcmp(line, "fork") && !fork()) {
		pause();
		_exit(0);
	}
	if (!strcmp(line, "open"))
		return open_more(atoi(what));
	if (!strcmp(line, "chdir"))
		return chdir(what);
	if (!strcmp(line, "lock"))
		return lock(what);
	if (!strcmp(line, "where"))
		return getcwd(answer, size) ? 0 : -1;
	return 0;
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
	char line[300], answer[300];

	if (argc != 3)
		return 2;
	at.sin_port = htons((unsigned short)atoi(argv[1]));
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (void *)&at, sizeof(at)) || listen(fd, 16))
		return 3;
	for (;;) {
		FILE *peer = fdopen(accept(fd, NULL, NULL), "r+");

		while (peer && fgets(line, sizeof(line), peer)) {
			line[strcspn(line, "\n")] = 0;
			if (serve(line, argv[2], answer, sizeof(answer)))
				snprintf(answer, sizeof(answer), "failed");
			fprintf(peer, "%s\n", answer);
			fflush(peer);
		}
		if (peer)
			fclose(peer);
	}
}
