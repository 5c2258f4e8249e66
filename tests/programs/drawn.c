/*
 * drawn [DEPTH [NAME]]: files and folders with names that libc draws, of a stack address
 * among others: with another depth they are others.  NAME: one that the program makes up.
 */
#include <alloca.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/programs/check.h"

#define ROUNDS	20

static void said(const char *name)
{
	CHECK(write(1, name, strlen(name)) == (ssize_t)strlen(name));
	CHECK(write(1, "\n", 1) == 1);
}

static void names(void)
{
	char plain[] = "/tmp/mve-drawn-XXXXXX", tail[] = "/tmp/mve-XXXXXX.drawn.txt";
	char folder[] = "/tmp/mve-drawn-XXXXXX", moved[64];
	int fd = mkstemp(plain), other = mkostemps(tail, 10, O_CLOEXEC);

	CHECK(fd >= 0 && other >= 0 && mkdtemp(folder));
	said(plain);
	said(tail);
	said(folder);
	CHECK(write(fd, plain, sizeof(plain)) == sizeof(plain));
	snprintf(moved, sizeof(moved), "%s/moved", folder);
	CHECK(!rename(plain, moved) && !unlink(moved) && !rmdir(folder) && !unlink(tail));
	close(fd);
	close(other);
}

int main(int argc, char **argv)
{
	volatile char *deep = alloca(argc > 1 ? (size_t)atoi(argv[1]) : 16);

	deep[0] = 1;
	for (int i = 0; i < ROUNDS; i++)
		names();
	if (argc > 2) {
		CHECK(open(argv[2], O_RDWR | O_CREAT | O_EXCL | O_TRUNC, 0600) >= 0);
		CHECK(!unlink(argv[2]));
	}
	return passed("drawn");
}
