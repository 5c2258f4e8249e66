/*
 * The head of a request: its first line, and of its fields the one that matters
 * here, Connection.
 *
 * PLANTED BUG: path_decode() reads the two digits behind a '%' before it looks
 * whether they are still in the path, so `GET /a%` reads two bytes behind the end
 * of its block of memory.  What it reads is thrown away: the request gets the
 * same 400 as any wrong escape, and a native build never knows.  It is there to be
 * found by a follower with AddressSanitizer (tests/sanitizers/).
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "httpd.h"

size_t request_length(const char *text, size_t len)
{
	const char *end = memmem(text, len, "\r\n\r\n", 4);

	return end ? (size_t)(end - text) + 4 : 0;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The byte that two digits stand for; negative: they are none. */
static int hex_byte(const char *digits)
{
	int high = hex_digit(digits[0]), low = hex_digit(digits[1]);

	return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/* In place; the new length, or -1: an escape is wrong, or stands for a NUL. */
static long path_decode(char *path, size_t len)
{
	size_t to = 0;

	for (size_t from = 0; from < len; from++, to++) {
		int byte = (unsigned char)path[from];

		if (byte == '%') {
			byte = hex_byte(path + from + 1);	/* the planted bug */
			if (from + 2 >= len)
				return -1;
			from += 2;
		}
		if (byte <= 0)
			return -1;
		path[to] = (char)byte;
	}
	return (long)to;
}

/* A path with a component ".." leads out of the folder. */
static bool path_leads_out(const char *path)
{
	for (const char *at = path; (at = strstr(at, "/..")); at += 3)
		if (!at[3] || at[3] == '/')
			return true;
	return false;
}

/* The path of a target, without its query; NULL: it is none that can be served. */
static char *path_of(const char *target)
{
	const size_t len = strcspn(target, "?#");
	char *raw = malloc(len ? len : 1), *path = NULL;
	long decoded;

	if (!raw)
		return NULL;
	memcpy(raw, target, len);
	decoded = path_decode(raw, len);
	if (decoded > 0 && raw[0] == '/')
		path = strndup(raw, (size_t)decoded);
	free(raw);
	if (path && path_leads_out(path)) {
		free(path);
		return NULL;
	}
	return path;
}

/* Line by line, behind the first: does a field ask for this connection's end? */
static bool fields_ask(char *line, const char *what)
{
	static const char name[] = "connection:";

	for (; line && *line; line = strstr(line, "\r\n")) {
		line += line[0] == '\r' ? 2 : 0;
		if (strncasecmp(line, name, sizeof(name) - 1))
			continue;
		line += sizeof(name) - 1;
		line += strspn(line, " \t");
		return !strncasecmp(line, what, strlen(what));
	}
	return false;
}

int request_parse(struct request *r, char *text)
{
	char *fields = strstr(text, "\r\n"), *rest, *method, *target, *version;

	*r = (struct request){ 0 };
	if (!fields)
		return 400;	/* a NUL stands before the end */
	*fields = 0;
	fields += 2;
	method = strtok_r(text, " ", &rest);
	target = strtok_r(NULL, " ", &rest);
	version = strtok_r(NULL, " ", &rest);
	if (!version || strtok_r(NULL, " ", &rest) || strncmp(version, "HTTP/1.", 7))
		return 400;
	r->head = !strcmp(method, "HEAD");
	if (!r->head && strcmp(method, "GET"))
		return 501;
	r->path = path_of(target);
	if (!r->path)
		return 400;
	r->keep = version[7] == '0' ? fields_ask(fields, "keep-alive") :
				      !fields_ask(fields, "close");
	return 0;
}

void request_free(struct request *r)
{
	free(r->path);
	r->path = NULL;
}
