/*
 * The clock functions of libc (through the vDSO) and the raw calls tell the
 * same time, for every clock, and the same errors.
 */
#include <sched.h>
#include <sys/time.h>
#include "check.h"

static int64_t ns(const struct timespec *t)
{
	return t->tv_sec * 1000000000ll + t->tv_nsec;
}

static void one_clock(clockid_t id)
{
	struct timespec a, b, c, res1, res2;

	for (int i = 0; i < 200; i++) {
		CHECK_EQ(raw3(SYS_clock_gettime, id, &a, 0), 0);
		CHECK_EQ(clock_gettime(id, &b), 0);
		CHECK_EQ(raw3(SYS_clock_gettime, id, &c, 0), 0);
		CHECK(b.tv_nsec >= 0 && b.tv_nsec < 1000000000);
		CHECK(ns(&a) <= ns(&b) && ns(&b) <= ns(&c));
		CHECK(ns(&c) - ns(&a) < 1000000000);
	}
	CHECK_EQ(raw3(SYS_clock_getres, id, &res1, 0), 0);
	CHECK_EQ(clock_getres(id, &res2), 0);
	CHECK_EQ(ns(&res1), ns(&res2));
}

static void every_clock(void)
{
	static const clockid_t ids[] = {
		CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_PROCESS_CPUTIME_ID,
		CLOCK_THREAD_CPUTIME_ID, CLOCK_MONOTONIC_RAW,
		CLOCK_REALTIME_COARSE, CLOCK_MONOTONIC_COARSE, CLOCK_BOOTTIME,
		CLOCK_REALTIME_ALARM, CLOCK_BOOTTIME_ALARM, CLOCK_TAI,
	};
	struct timespec t;

	for (size_t i = 0; i < COUNT(ids); i++) {
		bool raw = raw3(SYS_clock_gettime, ids[i], &t, 0) == 0;
		CHECK_EQ(clock_gettime(ids[i], &t) == 0, raw);
		if (raw)
			one_clock(ids[i]);
	}
	CHECK_FAILS(clock_gettime(10, &t), EINVAL);
	CHECK_FAILS(clock_gettime(99, &t), EINVAL);
	clockid_t own;
	CHECK_EQ(clock_getcpuclockid(getpid(), &own), 0);
	CHECK_EQ(clock_gettime(own, &t), 0);
}

static void other_functions(void)
{
	struct timeval before, between, after;
	struct timezone raw_zone, zone = { 0 };
	unsigned cpu, node;

	CHECK_EQ(raw3(SYS_gettimeofday, &before, &raw_zone, 0), 0);
	CHECK_EQ(gettimeofday(&between, &zone), 0);
	CHECK_EQ(raw3(SYS_gettimeofday, &after, 0, 0), 0);
	CHECK(!timercmp(&before, &between, >) && !timercmp(&between, &after, >));
	CHECK_EQ(zone.tz_minuteswest, 0);
	CHECK_EQ(raw_zone.tz_minuteswest, 0);

	time_t first = raw3(SYS_time, 0, 0, 0), stored, now = time(&stored);
	CHECK(first <= now && now == stored && now <= first + 1);

	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(0, &set);
	CHECK_EQ(sched_setaffinity(0, sizeof(set), &set), 0);
#ifdef __GLIBC__
	CHECK_EQ(getcpu(&cpu, &node), 0);
	CHECK_EQ(cpu, 0);
#endif
	CHECK_EQ(sched_getcpu(), 0);
	CHECK_EQ(raw3(SYS_getcpu, &cpu, &node, 0), 0);
	CHECK_EQ(cpu, 0);
}

static void bad_pointers(void)
{
	CHECK_EQ(raw3(SYS_clock_gettime, CLOCK_REALTIME, 8, 0), -EFAULT);
	CHECK_EQ(raw3(SYS_clock_gettime, CLOCK_MONOTONIC, 8, 0), -EFAULT);
	CHECK_EQ(raw3(SYS_clock_gettime, CLOCK_BOOTTIME, 0, 0), -EFAULT);
	CHECK_EQ(raw3(SYS_gettimeofday, 8, 0, 0), -EFAULT);
	CHECK_EQ(raw3(SYS_gettimeofday, 0, 8, 0), -EFAULT);
	CHECK_EQ(raw3(SYS_gettimeofday, 0, 0, 0), 0);
	CHECK_EQ(raw3(SYS_time, 8, 0, 0), -EFAULT);
	CHECK_EQ(raw3(SYS_getcpu, 8, 0, 0), -EFAULT);
	CHECK_EQ(raw3(SYS_getcpu, 0, 0, 0), 0);
	CHECK_EQ(raw3(SYS_clock_getres, 0, 0, 0), 0);
	CHECK_EQ(raw3(SYS_clock_nanosleep, 1, 0, 8), -EFAULT);
}

int main(void)
{
	every_clock();
	other_functions();
	bad_pointers();
	return passed("times");
}
