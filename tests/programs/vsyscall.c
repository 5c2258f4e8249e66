/*
 * The three fixed entry points of the vsyscall page, which the kernel
 * emulates on the page fault: no syscall instruction is run.
 */
#include <sys/time.h>
#include <time.h>
#include "check.h"

static bool has_page(void)
{
	char line[512];
	bool found = false;
	FILE *maps = fopen("/proc/self/maps", "r");

	while (fgets(line, sizeof(line), maps))
		found |= !!strstr(line, "[vsyscall]");
	fclose(maps);
	return found;
}

/* time() is that of the last tick, and so up to a tick behind. */
static time_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec;
}

int main(void)
{
	int (*get_time_of_day)(struct timeval *, void *) =
		(void *)0xffffffffff600000;
	time_t (*get_time)(time_t *) = (void *)0xffffffffff600400;
	int (*get_cpu)(unsigned *, unsigned *, void *) =
		(void *)0xffffffffff600800;
	struct timeval tv;
	unsigned cpu = -1, node = -1;
	time_t stored = 0;

	if (!has_page())
		skip("no vsyscall page");
	for (int i = 0; i < 100; i++) {
		time_t first = time(NULL);
		CHECK_EQ(get_time_of_day(&tv, NULL), 0);
		CHECK(tv.tv_sec >= first && tv.tv_sec <= now());
		CHECK(tv.tv_usec >= 0 && tv.tv_usec < 1000000);
		time_t got = get_time(&stored);
		CHECK(got == stored && got >= first && got <= time(NULL));
		CHECK_EQ(get_cpu(&cpu, &node, NULL), 0);
		CHECK(cpu < 4096 && node < 4096);
	}
	return passed("vsyscall");
}
