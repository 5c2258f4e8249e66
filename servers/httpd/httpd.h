/*
 * httpd: what its three files offer each other.  httpd.c has the connections and
 * the dispatch loop, request.c takes a request's head apart, reply.c makes what is
 * sent for it.
 */
#ifndef HTTPD_H
#define HTTPD_H

#include <stdbool.h>
#include <stddef.h>

#define HEAD_SIZE	8192		/* of a request; a longer one is refused */
#define FILE_SIZE_MAX	(16u << 20)	/* a larger file is not served */

struct request {
	char *path;		/* decoded, from malloc; begins with '/' */
	bool head;		/* HEAD: no body is sent */
	bool keep;		/* the connection stays open behind the reply */
};

struct reply {
	char *data;		/* head and body, from malloc */
	size_t len;
};

/*
 * Takes apart the head in text, which ends with an empty line; text is changed.
 * Returns 0, or the status that the request is to be refused with.
 */
int request_parse(struct request *r, char *text);
void request_free(struct request *r);

/* The length of the head that text begins with, or 0: it is not whole yet. */
size_t request_length(const char *text, size_t len);

/* The folder that files are served from, and whether they are compressed. */
int reply_begin(const char *folder, bool compress);

/* Replies are never empty: without memory for one, data is NULL. */
struct reply reply_file(const struct request *r);
struct reply reply_status(int status, bool keep);

#endif
