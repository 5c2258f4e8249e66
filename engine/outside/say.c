/*
 * Messages and the log.  A message is written with one write so that it stays
 * in one piece beside what the server prints.
 */
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "engine/outside/plain.h"
#include "engine/outside/say.h"

#define LINE_MAX_BYTES	2048

static void line_write(const char *prefix, const char *fmt, va_list ap, const char *hint)
{
	char line[LINE_MAX_BYTES], shown[LINE_MAX_BYTES * 2];
	size_t n = (size_t)snprintf(line, sizeof(line), "%s", prefix);
	int len = vsnprintf(line + n, sizeof(line) - n - 1, fmt, ap);

	n = len < 0 ? n : n + (size_t)len;
	if (n > sizeof(line) - 2)
		n = sizeof(line) - 2;
	/* Names come from outside: a line stays a line. */
	n = plain_text(line, n, false, shown, sizeof(shown) - 2);
	shown[n++] = '\n';
	if (hint) {
		len = snprintf(line, sizeof(line), "hint: %s", hint);
		n += plain_text(line, strnlen(line, (size_t)len), false, shown + n,
				sizeof(shown) - n - 1);
		shown[n++] = '\n';
	}
	if (write(STDERR_FILENO, shown, n) < 0)
		return;		/* nobody listens */
}

void say_error(const char *hint, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	line_write("mve: ", fmt, ap, hint);
	va_end(ap);
}

static int log_wanted(const char *module)
{
	const char *want = getenv("MVE_LOG");

	return want && (!strcmp(want, "all") || strstr(want, module));
}

void say_log(const char *module, const char *fmt, ...)
{
	va_list ap;
	char prefix[64];

	if (!log_wanted(module))
		return;
	snprintf(prefix, sizeof(prefix), "mve[%s]: ", module);
	va_start(ap, fmt);
	line_write(prefix, fmt, ap, NULL);
	va_end(ap);
}
