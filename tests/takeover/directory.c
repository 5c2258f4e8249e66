/*
 * directory PORT: works in a directory that is renamed as soon as it is there, and whose name
 * another has then, with an oom_score_adj of its own; for each line that it is sent it makes a file there and says so.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static void must(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

int main(int argc, char **argv)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int one = 1, listener, fd, made;
	char name[64];
	ssize_t n;

	must(argc == 2 && !mkdir("a", 0700) && !chdir("a"), "mkdir");
	fd = open("/proc/self/oom_score_adj", O_WRONLY);
	must(fd >= 0 && write(fd, "123", 3) == 3 && !close(fd), "oom_score_adj");
	must(!rename("../a", "../b") && !mkdir("../a", 0700), "rename");
	a.sin_port = htons((uint16_t)atoi(argv[1]));
	listener = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	must(!bind(listener, (struct sockaddr *)&a, sizeof(a)) && !listen(listener, 64), "listen");
	while ((fd = accept(listener, NULL, NULL)) >= 0) {
		while ((n = read(fd, name, sizeof(name) - 1)) > 0) {
			name[n - 1] = 0;
			must((made = open(name, O_CREAT | O_WRONLY, 0600)) >= 0, name);
			close(made);
			must(write(fd, "OK\n", 3) == 3, "write");
		}
		close(fd);
	}
	return 0;
}
