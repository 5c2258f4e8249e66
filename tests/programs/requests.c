/*
 * A program that says by an open, and by functions, where a request begins: seven
 * times.  The functions get all that one can be given.
 */
#include <stdarg.h>

#include "check.h"

#define REQUESTS	7
#define PATH		"/no/such/path/mve-request"

static volatile long seen;

__attribute__((noinline)) long request_plain(long a, long b, long c, long d, long e, long f,
					     long g)
{
	seen = a;
	return a + 2 * b + 3 * c + 5 * d + 7 * e + 11 * f + 13 * g;
}

__attribute__((noinline)) double request_any(int n, ...)
{
	double sum = 0;
	va_list ap;

	va_start(ap, n);
	for (int i = 0; i < n; i++)
		sum += i % 2 ? va_arg(ap, double) : (double)va_arg(ap, long);
	va_end(ap);
	return sum;
}

int main(void)
{
	for (int i = 0; i < REQUESTS; i++) {
		CHECK_EQ(request_plain(i, 2, 3, 4, 5, 6, 7), i + 4 + 9 + 20 + 35 + 66 + 91);
		CHECK(request_any(6, 1l, 0.5, 2l, 0.25, 4l, i / 8.0) == 7.75 + i / 8.0);
		CHECK(open(PATH, O_RDONLY) == -1);
		CHECK_EQ(errno, ENOENT);
		CHECK(open(PATH "s", O_RDONLY) == -1);
		CHECK_EQ(write(STDERR_FILENO, "", 0), 0);
	}
	return passed("requests");
}
