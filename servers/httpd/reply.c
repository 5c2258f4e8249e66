/*
 * What is sent for a request: a head, and a file of the folder that is served, as
 * it is or compressed anew each time by libbz2 (`Content-Encoding: bzip2`).
 *
 * A file is opened, read and closed for each request: a reply is a handful of
 * system calls, and nothing is kept between two requests.
 */
#include <bzlib.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "httpd.h"

#define REPLY_HEAD_SIZE	256
#define BLOCK_100K	1	/* of bzip2: the least memory for each request */

static int folder_fd;
static bool compressing;

int reply_begin(const char *folder, bool compress)
{
	compressing = compress;
	folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return folder_fd;
}

static const char *status_words(int status)
{
	switch (status) {
	case 200: return "OK";
	case 400: return "Bad Request";
	case 404: return "Not Found";
	case 431: return "Request Header Fields Too Large";
	case 501: return "Not Implemented";
	}
	return "Internal Server Error";
}

/* A head and room for the body behind it; len is the head's. */
static struct reply head_make(int status, bool keep, const char *encoding, size_t body)
{
	struct reply made = { .data = malloc(REPLY_HEAD_SIZE + body) };

	if (made.data)
		made.len = (size_t)snprintf(made.data, REPLY_HEAD_SIZE,
			"HTTP/1.1 %d %s\r\nServer: httpd\r\n%sContent-Length: %zu\r\n"
			"Connection: %s\r\n\r\n", status, status_words(status),
			encoding, body, keep ? "keep-alive" : "close");
	return made;
}

struct reply reply_status(int status, bool keep)
{
	const char *words = status_words(status);
	struct reply made = head_make(status, keep, "", strlen(words) + 1);

	if (made.data)
		made.len += (size_t)sprintf(made.data + made.len, "%s\n", words);
	return made;
}

static bool read_whole(int fd, char *to, size_t len)
{
	while (len) {
		ssize_t n = read(fd, to, len);

		if (n <= 0)
			return false;
		to += n;
		len -= (size_t)n;
	}
	return true;
}

/* The file as it is, from malloc; NULL: there is none that can be served. */
static char *file_read(const char *path, size_t *len)
{
	const char *name = strcmp(path, "/") ? path + strspn(path, "/") : "index.html";
	int fd = openat(folder_fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	char *data = NULL;

	if (fd < 0)
		return NULL;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size <= FILE_SIZE_MAX) {
		*len = (size_t)st.st_size;
		data = malloc(*len + 1);
		if (data && !read_whole(fd, data, *len)) {
			free(data);
			data = NULL;
		}
	}
	close(fd);
	return data;
}

/* As much as libbz2 may need, in its own words; false: it failed. */
static bool squeeze(char **data, size_t *len)
{
	unsigned room = (unsigned)(*len + *len / 100 + 600);
	char *out = malloc(room);

	if (!out || BZ2_bzBuffToBuffCompress(out, &room, *data, (unsigned)*len,
					     BLOCK_100K, 0, 0) != BZ_OK) {
		free(out);
		return false;
	}
	free(*data);
	*data = out;
	*len = room;
	return true;
}

struct reply reply_file(const struct request *r)
{
	size_t len = 0;
	char *data = file_read(r->path, &len);
	struct reply made;

	if (!data)
		return reply_status(404, r->keep);
	if (compressing && !squeeze(&data, &len)) {
		free(data);
		return reply_status(500, r->keep);
	}
	made = head_make(200, r->keep, compressing ? "Content-Encoding: bzip2\r\n" : "",
			 len);
	if (made.data && !r->head) {
		memcpy(made.data + made.len, data, len);
		made.len += len;
	}
	free(data);
	return made;
}
