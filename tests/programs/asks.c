/*
 * asks CONTROL FOLLOWER OUT: asks the session's monitor to promote a follower, by calls that
 * nothing holds: a "syscall; ret" of the inside's own is called, as whoever has taken a
 * version over would do.  So a follower asks, too, by itself.  Then a child that has left
 * its family and has unmapped what mve shares with it asks.  The answers go to OUT.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#define AREAS_MAX	16

struct range {
	unsigned long from, to;
};

static struct range areas[AREAS_MAX];
static int n_areas;
static void *call;

/* In the inside's code. */
static void *call_find(const struct range *r)
{
	static const unsigned char wanted[] = { 0x0f, 0x05, 0xc3 };

	return memmem((void *)r->from, r->to - r->from, wanted, sizeof(wanted));
}

static void maps_look(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512], rights[8], path[256];
	struct range r;

	while (f && fgets(line, sizeof(line), f)) {
		path[0] = 0;
		sscanf(line, "%lx-%lx %7s %*s %*s %*s %255[^\n]", &r.from, &r.to, rights, path);
		if (strstr(path, "memfd:mve-inside") && rights[2] == 'x' && !call)
			call = call_find(&r);
		else if (strstr(path, "memfd:mve") && rights[3] == 's' && n_areas < AREAS_MAX)
			areas[n_areas++] = r;
	}
	if (f)
		fclose(f);
}

static long raw(long nr, const void *a, long b, const void *c, long d)
{
	register long r10 __asm__("r10") = d, r8 __asm__("r8") = 0, r9 __asm__("r9") = 0;

	__asm__ volatile("call *%5"
			 : "+a"(nr)
			 : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(call), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return nr;
}

static void ask(char **argv, const char *who)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	char text[600], reply[400] = "";
	long fd = raw(SYS_socket, (void *)AF_UNIX, SOCK_STREAM, NULL, 0), n, out;

	snprintf(to.sun_path, sizeof(to.sun_path), "%s", argv[1]);
	n = raw(SYS_connect, (void *)fd, (long)&to, (void *)sizeof(to), 0);
	snprintf(text, sizeof(text), "{\"do\":\"promote\",\"follower\":\"%s\"}", argv[2]);
	raw(SYS_sendto, (void *)fd, (long)text, (void *)strlen(text), MSG_NOSIGNAL);
	raw(SYS_shutdown, (void *)fd, SHUT_WR, NULL, 0);
	raw(SYS_read, (void *)fd, (long)reply, (void *)(sizeof(reply) - 1), 0);
	n = snprintf(text, sizeof(text), "%s %ld %s\n", who, n, reply);
	out = raw(SYS_open, argv[3], O_WRONLY | O_APPEND, NULL, 0);
	raw(SYS_write, (void *)out, (long)text, (void *)n, 0);
	raw(SYS_close, (void *)out, 0, NULL, 0);
	raw(SYS_close, (void *)fd, 0, NULL, 0);
}

static void vanish(char **argv)
{
	for (int i = 0; i < n_areas; i++)
		raw(SYS_munmap, (void *)areas[i].from, (long)(areas[i].to - areas[i].from), NULL, 0);
	ask(argv, "vanished");
	raw(SYS_exit_group, NULL, 0, NULL, 0);
}

int main(int argc, char **argv)
{
	if (argc < 4)
		return 2;
	maps_look();
	if (!call)
		return 77;
	ask(argv, "first");
	if (!fork()) {
		setsid();
		if (fork())
			_exit(0);
		usleep(300000);		/* its parent has ended */
		vanish(argv);
	}
	sleep(3);
	puts("asks: ok");
	return 0;
}
