/*
 * Messages and the log.  A message is written with one write so that it stays
 * in one piece beside what the server prints.
 *
 * The monitor never waits for whoever reads them: what does not fit into the pipe is lost,
 * and the next that fits says how many were.
 */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "engine/outside/monitor/say.h"
#include "engine/outside/print/plain.h"

#define LINE_MAX_BYTES	2048	/* a message is twice that at most, which a pipe takes whole */

static bool waits = true;
static unsigned lost;

void say_never_waits(void)
{
	waits = false;
}

/* False: it would have to wait. */
static bool bytes_write(const char *bytes, size_t n)
{
	struct iovec part = { (char *)bytes, n };
	struct pollfd room = { .fd = STDERR_FILENO, .events = POLLOUT };
	ssize_t put;

	if (!waits && poll(&room, 1, 0) <= 0)
		return false;
	put = waits ? -1 : pwritev2(STDERR_FILENO, &part, 1, -1, RWF_NOWAIT);
	if (put < 0 && errno == EAGAIN && !waits)
		return false;
	/* Not all that can be written knows of RWF_NOWAIT; where nobody listens, nobody hears. */
	if (put < 0)
		put = write(STDERR_FILENO, bytes, n);
	return true;
}

static void message_write(const char *bytes, size_t n)
{
	char text[80];
	int len;

	if (lost) {
		len = snprintf(text, sizeof(text), "mve: nobody read here: %u messages were lost\n",
			       lost);
		if (bytes_write(text, (size_t)len))
			lost = 0;
	}
	if (!bytes_write(bytes, n))
		lost++;
}

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
	message_write(shown, n);
}

void say_error(const char *hint, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	line_write("mve: ", fmt, ap, hint);
	va_end(ap);
}

static void (*bug_told)(char *, size_t);

void say_of_bugs(void (*what)(char *text, size_t size))
{
	bug_told = what;
}

void must_failed(const char *place)
{
	char hint[400] = "please tell whoever maintains mve";

	if (bug_told)
		bug_told(hint, sizeof(hint));
	say_error(hint, "bug: %s", place);
	exit(EXIT_BUG);
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
