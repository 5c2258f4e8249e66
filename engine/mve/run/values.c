/*
 * Values of options.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/mve/run/values.h"
#include "engine/outside/monitor/say.h"

int word_take(const char *option, const char *text, const char *const words[], int n)
{
	char list[100] = "";

	for (int i = 0; i < n; i++) {
		if (!strcmp(text, words[i]))
			return i;
		strcat(list, i ? " or " : "");
		strcat(list, words[i]);
	}
	say_error(list, "not a value of --%s: %s", option, text);
	return -1;
}

int64_t size_take(const char *option, const char *text, int64_t least, int64_t most,
		  const char *hint)
{
	static const char units[] = "KMG";
	char *end;
	int64_t n = strtoll(text, &end, 10);
	const char *unit = *end && end[1] == 0 ? strchr(units, *end) : NULL;

	if (unit && n >= 0 && n < INT64_C(1) << 31)
		n <<= 10 * (unit - units + 1);
	if (end != text && (!*end || unit) && n >= least && n <= most)
		return n;
	say_error(hint, "not a value of --%s: %s (%lld to %lld)", option, text, (long long)least,
		  (long long)most);
	return -1;
}
