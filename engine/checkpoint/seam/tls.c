/*
 * Requests that come by OpenSSL.  The library reads and sends by calls of its own, which nobody
 * here sees: so a request begins when it has given the program something that came on an accepted
 * connection, and is over when the program gives it something to send.  What it keeps goes back
 * as all libraries' memory does.
 *
 * It may have read a part of what comes next, which does not come again: on the request's own
 * connection, which is closed if it is taken back; on another one the request is over before.
 */
#include <stddef.h>
#include "engine/checkpoint/seam/calls.h"
#include "engine/checkpoint/runtime/state.h"

/* They are there where the program calls them. */
int SSL_get_fd(const void *ssl) __attribute__((weak));
int SSL_read(void *ssl, void *to, int size) __attribute__((weak));
int SSL_read_ex(void *ssl, void *to, size_t size, size_t *got) __attribute__((weak));
int SSL_write(void *ssl, const void *from, int size) __attribute__((weak));
int SSL_write_ex(void *ssl, const void *from, size_t size, size_t *put) __attribute__((weak));
int SSL_accept(void *ssl) __attribute__((weak));
int SSL_do_handshake(void *ssl) __attribute__((weak));
int SSL_shutdown(void *ssl) __attribute__((weak));

static int reads(void *ssl, void *to, size_t size)
{
	int fd = SSL_get_fd(ssl);

	if (seam_is_open() && fd != back->fd)
		seam_end("it had gone on to another connection");
	seam_written(to, size);
	return fd;
}

static void sends(void *ssl)
{
	seam_answers(SSL_get_fd(ssl));
}

int mve_seam_SSL_read(void *ssl, void *to, int size)
{
	int fd = reads(ssl, to, size > 0 ? size : 0), got = SSL_read(ssl, to, size);

	return (int)seam_brought(fd, to, got);
}

int mve_seam_SSL_read_ex(void *ssl, void *to, size_t size, size_t *got)
{
	int fd = reads(ssl, to, size), done;

	seam_written(got, sizeof(*got));
	done = SSL_read_ex(ssl, to, size, got);
	return done > 0 && seam_brought(fd, to, *got) < 0 ? 0 : done;
}

int mve_seam_SSL_write(void *ssl, const void *from, int size)
{
	sends(ssl);
	return SSL_write(ssl, from, size);
}

int mve_seam_SSL_write_ex(void *ssl, const void *from, size_t size, size_t *put)
{
	sends(ssl);
	seam_written(put, sizeof(*put));
	return SSL_write_ex(ssl, from, size, put);
}

int mve_seam_SSL_accept(void *ssl)
{
	sends(ssl);
	return SSL_accept(ssl);
}

int mve_seam_SSL_do_handshake(void *ssl)
{
	sends(ssl);
	return SSL_do_handshake(ssl);
}

int mve_seam_SSL_shutdown(void *ssl)
{
	sends(ssl);
	return SSL_shutdown(ssl);
}
