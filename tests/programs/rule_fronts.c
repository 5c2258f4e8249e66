/*
 * Two versions for tests/rules/fronts.sh.  The old one opens a file before it takes a
 * lock that another thread takes behind it; the new one (with an argument) duplicates
 * a descriptor before it looks at a file.  Rules take the open, and give the dup.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int turns;

static void *second(void *arg)
{
	int *own = arg;

	do {
		CHECK(!usleep(20000));
		CHECK(!pthread_mutex_lock(&lock));
		*own = turns ? ++turns : 0;
		CHECK(!pthread_mutex_unlock(&lock));
	} while (!*own);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	struct stat st;
	int fd, own = 0;

	(void)argv;
	CHECK(!pthread_create(&thread, NULL, second, &own));
	if (argc == 1)
		CHECK((fd = open("/dev/zero", O_RDONLY)) >= 0 && !close(fd));
	CHECK(!pthread_mutex_lock(&lock));
	turns = 1;
	CHECK(!pthread_mutex_unlock(&lock));
	CHECK(!pthread_join(thread, NULL) && own == 2);

	CHECK((fd = open("/etc/passwd", O_RDONLY)) >= 0);
	if (argc > 1)
		CHECK(dup(1) >= 0);
	CHECK(!fstat(fd, &st) && S_ISREG(st.st_mode));
	puts("both");
	return passed("rule_fronts");
}
