/*
 * Times of a recording, as users say them.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/mve/log/log.h"

#define DAY	86400

static bool seconds_read(const char *text, double *seconds)
{
	char *end;

	*seconds = strtod(text, &end);
	return end != text && !*end && isfinite(*seconds) && *seconds >= 0 &&
	       *seconds < 1e9;
}

/* Midnight of the day on which it began, as the clock of this place has it. */
static int64_t midnight(int64_t began)
{
	time_t at = (time_t)began;
	struct tm tm;

	if (!localtime_r(&at, &tm))
		return began;
	tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
	tm.tm_isdst = -1;
	return (int64_t)mktime(&tm);
}

bool log_time(const char *text, int64_t began, uint64_t *ns)
{
	unsigned hour, minute;
	int digits = 0;
	double seconds;
	int64_t from = began;

	if (text[0] == '+') {
		if (!seconds_read(text + 1, &seconds))
			return false;
	} else {
		if (sscanf(text, "%2u:%2u:%n", &hour, &minute, &digits) != 2 || !digits ||
		    hour > 23 || minute > 59 || !seconds_read(text + digits, &seconds) ||
		    seconds >= 61)
			return false;
		from = midnight(began) + hour * 3600 + minute * 60;
		if (from + (int64_t)seconds < began)
			from += DAY;
	}
	*ns = (uint64_t)from * 1000000000 + (uint64_t)(seconds * 1e9);
	return true;
}

void log_clock(uint64_t ns, char text[LOG_CLOCK])
{
	time_t seconds = (time_t)(ns / 1000000000);
	char day[16] = "?";
	struct tm tm;

	if (localtime_r(&seconds, &tm))
		strftime(day, sizeof(day), "%H:%M:%S", &tm);
	snprintf(text, LOG_CLOCK, "%s.%06lu", day, (unsigned long)(ns % 1000000000 / 1000));
}
