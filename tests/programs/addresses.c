/*
 * What a program says of its addresses: of code, stack, heap, mappings, threads,
 * arguments, and the names that mkstemp makes of them.  It goes through a pipe, so
 * that a twin must say the same; a native run only shows that it works.
 */
#include <pthread.h>
#include "check.h"

static int pipe_fd[2];

static void tell(const void *p)
{
	const void *back;

	CHECK_EQ(write(pipe_fd[1], &p, sizeof(p)), sizeof(p));
	CHECK_EQ(read(pipe_fd[0], &back, sizeof(back)), sizeof(back));
	CHECK_EQ(back, p);
}

static void *thread(void *arg)
{
	char local = 0;

	tell(&local);
	tell((void *)pthread_self());
	tell(malloc(100));
	return arg;
}

static void file(void)
{
	char name[] = "file-XXXXXX";
	int fd = mkstemp(name);

	CHECK(fd >= 0);
	CHECK_EQ(unlink(name), 0);
	close(fd);
}

/* Of a large file the kernel chooses places that suit its pages; of a memfd it need not. */
static void mapped(int flags)
{
	int fd = open("mapped", O_RDWR | O_CREAT | O_TRUNC, 0600);
	char *at;

	CHECK(fd >= 0 && !unlink("mapped") && !ftruncate(fd, 5 << 20));
	tell(mmap(NULL, 12345, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	at = mmap(NULL, 5 << 20, PROT_READ | PROT_WRITE, flags, fd, 0);
	tell(at);
	CHECK(at != MAP_FAILED);
	at[12345] = 1;
	tell(mmap(NULL, 1 << 16, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	close(fd);
}

static void everything(char **argv)
{
	pthread_t id;
	char local = 0;

	tell(&local);
	tell(argv[0]);
	tell(argv);
	tell((void *)everything);
	tell((void *)printf);
	tell(malloc(10));
	tell(malloc(1 << 20));
	tell(sbrk(0));
	tell(mmap(NULL, 1 << 16, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	mapped(MAP_SHARED);
	mapped(MAP_PRIVATE);
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(pthread_create(&id, NULL, thread, NULL), 0);
		CHECK_EQ(pthread_join(id, NULL), 0);
		file();
	}
}

int main(int argc, char **argv)
{
	CHECK_EQ(pipe(pipe_fd), 0);
	everything(argv);
	pid_t pid = fork();
	if (!pid) {
		everything(argv);
		_exit(0);
	}
	CHECK_EQ(status_of(pid), 0);
	return passed("addresses");
}
