/* A program that says by an open where a request begins: seven times. */
#include "check.h"

#define REQUESTS	7
#define PATH		"/no/such/path/mve-request"

int main(void)
{
	for (int i = 0; i < REQUESTS; i++) {
		CHECK(open(PATH, O_RDONLY) == -1);
		CHECK_EQ(errno, ENOENT);
		CHECK(open(PATH "s", O_RDONLY) == -1);
		CHECK_EQ(write(STDERR_FILENO, "", 0), 0);
	}
	return passed("requests");
}
