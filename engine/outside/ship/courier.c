/*
 * The process gets three descriptors and nothing else of ours.  Of its page we read numbers, of its
 * socket words for people; neither decides about the server.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/outside/log/aside.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/wakes.h"
#include "engine/outside/ship/courier.h"
#include "engine/outside/ship/spool.h"

#define LEFT_MS		15000	/* at the end: it gets on with nothing */
#define LOOK_MS		100

_Static_assert(SHIP_FD_PAGE == STDERR_FILENO + 1, "what descriptors_keep makes of them");

/* Beside our own binary. */
static bool program_path(char *path, size_t size)
{
	static const char name[] = "mve-ship";
	ssize_t n = readlink("/proc/self/exe", path, size - sizeof(name));
	char *slash;

	path[n < 0 ? 0 : n] = 0;
	slash = strrchr(path, '/');
	if (!slash)
		return false;
	strcpy(slash + 1, name);
	return !access(path, X_OK);
}

bool courier_there(void)
{
	char path[PATH_MAX];
	bool there = program_path(path, sizeof(path));

	if (!there)
		say_error("install libnats-dev and make mve anew: it has mve-ship then",
			  "cannot speak with NATS: %s: it is not there", path);
	return there;
}

int courier_open(struct courier *c, const char *mode, const char *url, int folder)
{
	int fd = memfd_create("mve-ship", MFD_CLOEXEC);
	void *page = MAP_FAILED;

	MUST(folder >= 0);
	if (fd >= 0 && !ftruncate(fd, sizeof(struct ship_page)))
		page = mmap(NULL, sizeof(struct ship_page), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			    0);
	if (page == MAP_FAILED)
		return -errno;
	*c = (struct courier){ .mode = mode, .url = url, .page = page, .page_fd = fd,
			       .folder = folder, .socket = -1 };
	return 0;
}

static _Noreturn void courier_become(struct courier *c, int socket)
{
	char path[PATH_MAX];
	int *const kept[] = { &c->page_fd, &c->folder, &socket };

	setsid();
	aside_begin();
	program_path(path, sizeof(path));
	descriptors_keep(kept, SHIP_FD_ENDS - SHIP_FD_PAGE);
	for (int fd = SHIP_FD_PAGE; fd < SHIP_FD_ENDS; fd++)
		fcntl(fd, F_SETFD, 0);
	execl(path, "mve-ship", c->mode, c->url, (char *)NULL);
	_exit(EXIT_SYSTEM);
}

int courier_start(struct courier *c)
{
	int pair[2];

	MUST(c->socket < 0 && c->page);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	c->pid = fork();
	if (!c->pid)
		courier_become(c, pair[1]);
	close(pair[1]);
	c->socket = pair[0];
	if (c->pid > 0)
		return 0;
	close(c->socket);
	c->socket = -1;
	return -errno;
}

int courier_hear(struct courier *c)
{
	char words[1 + SHIP_WORDS];
	ssize_t n = recv(c->socket, words, sizeof(words) - 1, MSG_DONTWAIT);
	int state;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0) {
		close(c->socket);
		c->socket = -1;
		return -1;
	}
	for (ssize_t i = 0; i < n; i++)	/* a server's words may be in it */
		words[i] = words[i] < ' ' || words[i] > '~' ? '?' : words[i];
	words[n] = 0;
	state = words[0] - '0';
	c->state = state >= 0 && state < SHIP_STATES ? (enum ship_state)state : SHIP_TRIES;
	strcpy(c->words, words + 1);
	return 1;
}

static uint64_t acked(const struct courier *c)
{
	return __atomic_load_n(&c->page->tail.acked, __ATOMIC_RELAXED);
}

void courier_end(struct courier *c)
{
	uint64_t before = acked(c), moved_ms = now_ms();
	struct pollfd p = { .events = POLLIN };

	if (c->socket >= 0)
		shutdown(c->socket, SHUT_WR);
	while (c->socket >= 0 && now_ms() < moved_ms + LEFT_MS) {
		p.fd = c->socket;
		poll(&p, 1, LOOK_MS);
		while (c->socket >= 0 && courier_hear(c) > 0)
			;
		if (acked(c) != before)
			moved_ms = now_ms();
		before = acked(c);
	}
	if (c->socket >= 0) {
		kill(c->pid, SIGKILL);
		close(c->socket);
		c->socket = -1;
	}
	if (c->page->drops)
		spool_remove(c->folder);
	close(c->folder);
}

void courier_name(const struct courier *c, char *text, size_t size)
{
	const char *hosts = strstr(c->url, "://"), *at = strrchr(c->url, '@');

	MUST(hosts);
	if (at)
		snprintf(text, size, "%.*s://%s", (int)(hosts - c->url), c->url, at + 1);
	else
		snprintf(text, size, "%s", c->url);
}
