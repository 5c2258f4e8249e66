/*
 * high_numbers PAD: descriptors by the thousand, with numbers far up: a file that is mapped
 * by one, a folder that is opened in, pairs by which threads speak, and an epoll set with
 * more registrations than have fitted anywhere.  The set's data are pointers, which PAD bytes
 * move: a follower with another PAD has others.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "check.h"

#define WANTED	17000	/* registrations */
#define OTHERS	1200	/* numbers below and above them */
#define FILE_AT	4200

struct object {
	int fd, seen;
};

static struct object *objects;
static int bell[2], said;

static int move(int fd, int to)
{
	int high = fcntl(fd, F_DUPFD, to);

	CHECK(high >= to);
	CHECK(close(fd) == 0);
	return high;
}

static void map(const char *name)
{
	int folder = move(open(".", O_RDONLY | O_DIRECTORY), FILE_AT);
	int fd = openat(folder, name, O_RDWR | O_CREAT | O_TRUNC, 0600), again;
	char *at;

	CHECK(fd >= 0 && write(fd, "by its number", 13) == 13);
	CHECK(close(fd) == 0);
	again = move(openat(folder, name, O_RDONLY), FILE_AT);
	at = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, again, 0);
	CHECK(at != MAP_FAILED && !memcmp(at, "by its number", 13));
	CHECK(unlinkat(folder, name, 0) == 0);
	CHECK(close(again) == 0 && close(folder) == 0);
}

static void *listen_to(void *arg)
{
	char c;

	CHECK(read(bell[0], &c, 1) == 1);
	printf("heard %d\n", said);
	return arg;
}

static void speak(int at)
{
	pthread_t other;

	CHECK(pipe(bell) == 0);
	bell[0] = move(bell[0], at);
	bell[1] = move(bell[1], at);
	CHECK(pthread_create(&other, NULL, listen_to, NULL) == 0);
	said = at;
	CHECK(write(bell[1], "x", 1) == 1);
	CHECK(pthread_join(other, NULL) == 0);
	CHECK(close(bell[0]) == 0 && close(bell[1]) == 0);
}

/* All are ready; each event leads to an object of ours, and to all of them in time. */
static void all_come(int set, int from, int count)
{
	struct epoll_event e[512];
	int seen = 0;

	while (seen < count - from) {
		int n = epoll_wait(set, e, 512, -1);

		CHECK(n > 0);
		for (int i = 0; i < n; i++) {
			struct object *o = e[i].data.ptr;

			CHECK(o >= objects + from && o < objects + count);
			CHECK(o->fd == objects[o - objects].fd && !o->seen);
			o->seen = 1;
			seen++;
			CHECK(epoll_ctl(set, EPOLL_CTL_DEL, o->fd, NULL) == 0);
		}
	}
}

static void add(int set, struct object *o, int fd)
{
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = o };

	*o = (struct object){ .fd = fd };
	CHECK(epoll_ctl(set, EPOLL_CTL_ADD, fd, &e) == 0);
}

static void poll_all(int count)
{
	int set = epoll_create1(0), one = eventfd(1, 0);
	static int fd[WANTED];

	for (int i = 0; i < count; i++) {
		fd[i] = fcntl(one, F_DUPFD, OTHERS / 2);
		add(set, &objects[i], fd[i]);
	}
	all_come(set, 0, count);
	/* Numbers and data that were used before, in another order. */
	for (int i = count / 2; i < count; i++)
		add(set, &objects[i], fd[count - 1 - i + count / 2]);
	all_come(set, count / 2, count);
	CHECK(close(set) == 0 && close(one) == 0);
}

int main(int argc, char **argv)
{
	struct rlimit limit;
	int count, pad = argc > 1 ? atoi(argv[1]) : 0;
	char *at = malloc((WANTED + 1) * sizeof(*objects) + 2 * (size_t)pad);

	objects = (struct object *)(at + pad);
	CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	limit.rlim_cur = limit.rlim_max < 1 << 20 ? limit.rlim_max : 1 << 20;
	CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	count = limit.rlim_cur > WANTED + OTHERS ? WANTED : (int)limit.rlim_cur - OTHERS;
	map("high-file");
	speak(FILE_AT);
	poll_all(count);
	speak(count + OTHERS / 2);
	return passed("high_numbers");
}
