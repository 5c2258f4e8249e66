/*
 * A program that finds a fault of its own and writes down what it knows of it before it
 * gives up, as servers do: into a file that it makes, flushes, cuts and gives its name.
 * With "lives" it finds none: a follower that leads where the other gave up need not have
 * written that.  It begins when the file "go" is there.
 */
#include <sys/stat.h>

#include "check.h"

static void write_down(void)
{
	int fd = openat(AT_FDCWD, "words", O_CREAT | O_WRONLY | O_TRUNC, 0600);

	CHECK(fd >= 0);
	CHECK_EQ(fchmod(fd, 0640), 0);
	CHECK_EQ(write(fd, "It gave up.\n", 12), 12);
	CHECK_EQ(pwrite(fd, "He", 2, 0), 2);
	CHECK_EQ(fdatasync(fd), 0);
	CHECK_EQ(ftruncate(fd, 11), 0);
	CHECK_EQ(close(fd), 0);
	CHECK_EQ(mkdir("dead", 0700), 0);
	CHECK_EQ(rename("words", "dead/words"), 0);
	umask(077);
}

int main(int argc, char **argv)
{
	CHECK_EQ(write(1, "begun\n", 6), 6);
	while (access("go", F_OK))
		usleep(1000);
	if (argc < 2 || strcmp(argv[1], "lives")) {
		write_down();
		abort();
	}
	CHECK_EQ(write(1, "goes on\n", 8), 8);
	puts("last_words: ok");
	return 0;
}
