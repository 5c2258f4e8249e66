/*
 * gone PORT FOLDER PARTS: a server whose descriptors were given up and copied in each way that there
 * is: close, close_range, in the place of another (dup2, dup3), by an execve; dup, fcntl, a
 * message.  It has record locks on files of FOLDER by what is left, and epoll sets whose data
 * are addresses.
 *
 *	tell	what each set says of its items, and each copy of itself
 *	again	all of it is done once more
 *	quit
 *
 * Which bytes are locked is for others to see: gone.py.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define MUST(x) do { if (!(x)) { fprintf(stderr, "line %d: ", __LINE__); perror(#x); exit(3); } \
		} while (0)
#ifndef SHIFT
#define SHIFT	0	/* the other build has its items elsewhere */
#endif

static char text[16384];
static size_t text_n;
static int spare;	/* what is put in the place of another */

static void add(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	text_n += (size_t)vsnprintf(text + text_n, sizeof(text) - text_n, format, ap);
	va_end(ap);
}

/* --- ways to give a descriptor up, and to copy one --------------------------------------- */

static void way_close(int fd) { MUST(close(fd) == 0); }
static void way_range(int fd) { MUST(syscall(SYS_close_range, fd, fd, 0) == 0); }
static void way_dup2(int fd) { MUST(dup2(spare, fd) == fd && close(fd) == 0); }
static void way_dup3(int fd) { MUST(dup3(spare, fd, O_CLOEXEC) == fd && close(fd) == 0); }

/* These give up nothing. */
static void way_same(int fd) { MUST(dup2(fd, fd) == fd); }
static void way_fails(int fd) { MUST(dup2(-1, fd) < 0 && dup3(fd, fd, 0) < 0); }
static void way_flag(int fd)
{
	MUST(syscall(SYS_close_range, fd, fd, CLOSE_RANGE_CLOEXEC) == 0);
	MUST(syscall(SYS_close_range, fd, fd - 1, 0) < 0);
}

static const struct way {
	const char *name;
	void (*give)(int fd);
} ways[] = { { "close", way_close }, { "range", way_range }, { "dup2", way_dup2 },
	     { "dup3", way_dup3 }, { "same", way_same }, { "fails", way_fails },
	     { "flag", way_flag } };
#define WAYS	(sizeof(ways) / sizeof(*ways))
#define GIVES	4	/* the first of them */

/* By a message to itself. */
static int copy_sent(int fd)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 }, byte = 'x';
	struct iovec iov = { &byte, 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
			    .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	int pair[2], got;

	MUST(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(int));
	MUST(sendmsg(pair[0], &m, 0) == 1);
	m.msg_controllen = sizeof(control);
	MUST(recvmsg(pair[1], &m, MSG_CMSG_CLOEXEC) == 1);
	memcpy(&got, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(int));
	close(pair[0]);
	close(pair[1]);
	return got;
}

static int copy_dup(int fd) { return dup(fd); }
static int copy_dup2(int fd) { return dup2(fd, open("/dev/null", O_RDONLY)); }
static int copy_dup3(int fd) { return dup3(fd, open("/dev/null", O_RDONLY), O_CLOEXEC); }
static int copy_fcntl(int fd) { return fcntl(fd, F_DUPFD, 100); }
static int copy_cloexec(int fd) { return fcntl(fd, F_DUPFD_CLOEXEC, 100); }

static const struct copy {
	const char *name;
	int (*make)(int fd);
} copies[] = { { "dup", copy_dup }, { "dup2", copy_dup2 }, { "dup3", copy_dup3 },
	       { "fcntl", copy_fcntl }, { "cloexec", copy_cloexec }, { "sent", copy_sent } };
#define COPIES	(sizeof(copies) / sizeof(*copies))
#define KNOWN	(COPIES - 1)	/* the last is not known to be a copy: not of a set */

/* --- record locks ------------------------------------------------------------------------ */

static int lock_open(const char *name, int flags)
{
	int fd = open(name, O_RDWR | O_CREAT | flags, 0666);

	MUST(fd >= 0);
	return fd;
}

#define MANY	1100	/* descriptors: mve asks for the locks of so many another way */

static void lock(int fd, short type, short whence, off_t from)
{
	struct flock l = { .l_type = type, .l_whence = whence, .l_start = from, .l_len = 5 };

	MUST(fcntl(fd, F_SETLK, &l) == 0);
}

/* A lock is held by one descriptor, and another one of its file is given up. */
static void lock_lost(const struct way *w, const char *by)
{
	char name[64], other[64];
	int fd, second;

	snprintf(name, sizeof(name), "lock-%s-%s", w->name, by);
	snprintf(other, sizeof(other), "%s.other", name);
	fd = lock_open(name, O_CLOEXEC);
	lock(fd, F_WRLCK, SEEK_SET, 10);
	unlink(other);
	MUST(strcmp(by, "symlink") || symlink(name, other) == 0);
	MUST(strcmp(by, "link") || link(name, other) == 0);
	second = !strcmp(by, "copy") ? dup(fd) : !strcmp(by, "itself") ? fd :
		 lock_open(strcmp(by, "name") ? other : name, 0);
	MUST(second >= 0);
	w->give(second);
}

static void locks_take(void)
{
	static const char *const by[] = { "name", "copy", "itself", "link", "symlink" };
	int fd;

	for (unsigned i = 0; i < WAYS; i++)
		for (unsigned k = 0; k < sizeof(by) / sizeof(*by); k++)
			lock_lost(&ways[i], by[k]);
	fd = lock_open("lock-place", O_CLOEXEC);
	MUST(lseek(fd, 12, SEEK_SET) == 12);
	lock(fd, F_WRLCK, SEEK_CUR, -2);
	lock(lock_open("lock-read", O_CLOEXEC), F_RDLCK, SEEK_SET, 10);
}

/* --- epoll sets --------------------------------------------------------------------------- */

struct item {
	char name[40];
	int out;
};

static struct item all_items[1000 + SHIFT], *items = all_items + SHIFT;
static unsigned items_n;
static struct { char name[40]; int fd; } sets[500];
static unsigned sets_n;

static int set_make(void)
{
	int set = epoll_create1(EPOLL_CLOEXEC);

	MUST(set >= 0);
	return set;
}

static void set_note(int set, const char *what, const char *name)
{
	snprintf(sets[sets_n].name, sizeof(sets[0].name), "%s %s", what, name);
	sets[sets_n++].fd = set;
}

/* A pipe that can be read, in the set. */
static int item_add(int set, const char *what, const char *name)
{
	struct item *i = &items[items_n++];
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = i };
	int pair[2];

	snprintf(i->name, sizeof(i->name), "%s %s", what, name);
	MUST(pipe2(pair, O_CLOEXEC) == 0 && write(pair[1], "x", 1) == 1);
	MUST(epoll_ctl(set, EPOLL_CTL_ADD, pair[0], &e) == 0);
	i->out = pair[1];
	return pair[0];
}

static void sets_make(void)
{
	for (unsigned i = 0; i < KNOWN; i++) {
		int set = set_make(), copy = copies[i].make(set);

		/* What is registered by the one is met by the other, which outlives it. */
		item_add(set, "before", copies[i].name);
		item_add(copy, "by the copy", copies[i].name);
		close(set);
		set_note(copy, "copied by", copies[i].name);
	}
	for (unsigned i = 0; i < GIVES; i++) {
		int set = set_make(), fd;

		item_add(set, "of a set that is gone", ways[i].name);
		ways[i].give(set);
		set = set_make();
		fd = item_add(set, "gone", ways[i].name);
		ways[i].give(fd);
		item_add(set, "left", ways[i].name);
		/* What another number leads to stays. */
		fd = item_add(set, "copied and gone", ways[i].name);
		MUST(fcntl(fd, F_DUPFD_CLOEXEC, 200) >= 0);
		ways[i].give(fd);
		set_note(set, "whose item went by", ways[i].name);
	}
}

static void sets_tell(void)
{
	struct epoll_event e[8];

	for (unsigned i = 0; i < sets_n; i++) {
		int n = epoll_wait(sets[i].fd, e, 8, 0);

		add("set %s: %d", sets[i].name, n);
		for (int k = 0; k < n; k++) {
			const struct item *it = e[k].data.ptr;

			add(", %s", it >= items && it < items + items_n ? it->name :
			    "a stranger");
		}
		add("; ");
	}
}

/* --- what it is otherwise -------------------------------------------------------------------- */

static struct { char name[40]; int event, timer, listens; } copied[100];
static unsigned copied_n;

static void others_copy(void)
{
	for (unsigned i = 0; i < COPIES; i++) {
		struct sockaddr_in a = { .sin_family = AF_INET,
					 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
		struct itimerspec far = { { 0, 0 }, { 1000000, 0 } };
		int event = eventfd(3, EFD_NONBLOCK | EFD_CLOEXEC), timer, s;

		timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
		MUST(timerfd_settime(timer, 0, &far, NULL) == 0);
		s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		MUST(bind(s, (struct sockaddr *)&a, sizeof(a)) == 0 && listen(s, 1) == 0);
		snprintf(copied[copied_n].name, sizeof(copied[0].name), "%s", copies[i].name);
		copied[copied_n].event = copies[i].make(event);
		copied[copied_n].timer = copies[i].make(timer);
		copied[copied_n++].listens = copies[i].make(s);
		close(event);
		close(timer);
		way_range(s);
	}
}

/* A connection to itself. */
static int comes(int listens)
{
	struct sockaddr_in a;
	socklen_t len = sizeof(a);
	int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), c;
	char byte = 0;

	MUST(getsockname(listens, (struct sockaddr *)&a, &len) == 0);
	MUST(connect(s, (struct sockaddr *)&a, sizeof(a)) == 0);
	c = accept4(listens, NULL, NULL, SOCK_CLOEXEC);
	MUST(c >= 0 && write(s, "x", 1) == 1 && read(c, &byte, 1) == 1);
	close(s);
	dup2(spare, c);
	close(c);
	return byte == 'x';
}

static void others_tell(void)
{
	for (unsigned i = 0; i < copied_n; i++) {
		uint64_t n = 0;
		struct itimerspec left;

		MUST(write(copied[i].event, &(uint64_t){ 2 }, 8) == 8);
		MUST(read(copied[i].event, &n, 8) == 8);
		MUST(write(copied[i].event, &(uint64_t){ 3 }, 8) == 8);
		MUST(timerfd_gettime(copied[i].timer, &left) == 0);
		add("%s: %lu, ticks %d, listens %d; ", copied[i].name, n,
		    left.it_value.tv_sec > 900000, comes(copied[i].listens));
	}
}

/* --- a number of one file is another's ------------------------------------------------------- */

#define LARGE	(17 << 20)	/* followers open it for themselves */

static void file_make(const char *name, char with)
{
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0666);

	MUST(fd >= 0 && pwrite(fd, &with, 1, 0) == 1 && ftruncate(fd, LARGE) == 0);
	close(fd);
}

static void maps_tell(void)
{
	for (unsigned i = 0; i < GIVES; i++) {
		int other = open("map-b", O_RDONLY | O_CLOEXEC), fd = open("map-a", O_RDONLY);
		int was = fd;
		char *at;

		ways[i].give(fd);
		fd = dup(other);
		at = mmap(NULL, LARGE, PROT_READ, MAP_PRIVATE, fd, 0);
		MUST(fd == was && at != MAP_FAILED);
		add("map %s %c; ", ways[i].name, *at ? *at : '0');
		munmap(at, LARGE);
		close(fd);
		close(other);
	}
}

/* --- the server ------------------------------------------------------------------------------ */

static const char *parts;

static void all_make(void)
{
	if (strstr(parts, "locks"))
		locks_take();
	if (strstr(parts, "sets"))
		sets_make();
	if (strstr(parts, "others"))
		others_copy();
}

static void answer(const char *line)
{
	text_n = 0;
	if (!strncmp(line, "again", 5))
		all_make();
	sets_tell();
	others_tell();
	if (strstr(parts, "maps"))
		maps_tell();
	add("\n");
}

static int listen_on(uint16_t port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	MUST(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0);
	MUST(bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0 && listen(fd, 10) == 0);
	return fd;
}

/* Locks outlive an execve, but for those of files that it closes. */
static void exec_once(char **argv)
{
	int fd;

	MUST(chdir(argv[2]) == 0);
	lock(lock_open("lock-exec", 0), F_WRLCK, SEEK_SET, 10);
	fd = lock_open("lock-closed", 0);
	lock(fd, F_WRLCK, SEEK_SET, 10);
	lock_open("lock-closed", O_CLOEXEC);
	lock(lock_open("lock-cloexec", O_CLOEXEC), F_WRLCK, SEEK_SET, 10);
	execl("/proc/self/exe", "gone", argv[1], argv[2], parts, "now",
	      (char *)NULL);
	exit(5);
}

int main(int argc, char **argv)
{
	int fd, client;
	char line[100];
	ssize_t n;

	if (argc < 4)
		return 2;
	parts = argv[3];
	if (argc == 4)
		exec_once(argv);
	fd = listen_on((uint16_t)atoi(argv[1]));
	spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	file_make("map-a", 'a');
	file_make("map-b", 'b');
	for (int i = 0; strstr(parts, "files") && i < MANY; i++)
		MUST(open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0);
	all_make();
	while ((client = accept(fd, NULL, NULL)) >= 0) {
		while ((n = read(client, line, sizeof(line) - 1)) > 0) {
			line[n] = 0;
			if (!strncmp(line, "quit", 4))
				return 0;
			answer(line);
			for (size_t done = 0; done < text_n; done += n > 0 ? (size_t)n : 0)
				n = write(client, text + done, text_n - done);
		}
		close(client);
	}
	return 4;
}
