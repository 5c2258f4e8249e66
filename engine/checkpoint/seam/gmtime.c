/*
 * gmtime_r as libc has it, but that libc's takes a lock and looks whether it knows the time zone:
 * it writes what it keeps, and a request that tells the date (a web server's) would cost a look at
 * the memory of libraries.  Leap seconds are not counted, whatever the time zone.
 */
#include <errno.h>
#include <limits.h>
#include <time.h>
#include "engine/checkpoint/seam/calls.h"

#define DAY_S		86400
#define ERA_YEARS	400		/* the calendar comes again */
#define ERA_DAYS	146097
#define FOUR_DAYS	1461		/* of four years, one of them a leap year */
#define CENTURY_DAYS	36524
#define MARCH_1_OF_0	(-719468)	/* a year begins in March: a leap day is its last */

static long floor_of(long a, long b)
{
	return a / b - (a % b < 0);
}

static int is_leap(long year)
{
	return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

/* The year, and which of its days it is, both counted from March. */
static long year_of(long days, long *day)
{
	long from = days - MARCH_1_OF_0, era = floor_of(from, ERA_DAYS);
	long in_era = from - era * ERA_DAYS;
	long year = (in_era - in_era / (FOUR_DAYS - 1) + in_era / CENTURY_DAYS -
		     in_era / (ERA_DAYS - 1)) / 365;

	*day = in_era - (365 * year + year / 4 - year / 100);
	return year + era * ERA_YEARS;
}

struct tm *mve_seam_gmtime_r(const time_t *when, struct tm *to)
{
	long days = floor_of(*when, DAY_S), left = *when - days * DAY_S, day;
	long year = year_of(days, &day), month = (5 * day + 2) / 153;	/* 31 30 31 30 31, twice */
	int late = month >= 10;						/* January, February */

	if (year + late - 1900 > INT_MAX || year + late - 1900 < INT_MIN) {
		errno = EOVERFLOW;
		return NULL;
	}
	*to = (struct tm){
		.tm_sec = (int)(left % 60), .tm_min = (int)(left / 60 % 60),
		.tm_hour = (int)(left / 3600), .tm_mday = (int)(day - (153 * month + 2) / 5 + 1),
		.tm_mon = (int)(late ? month - 10 : month + 2),
		.tm_year = (int)(year + late - 1900),
		.tm_wday = (int)(days + 4 - floor_of(days + 4, 7) * 7),
		.tm_yday = (int)(late ? day - 306 : day + 59 + is_leap(year)),
		.tm_zone = "GMT",
	};
	return to;
}
