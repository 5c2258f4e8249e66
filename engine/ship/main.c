/*
 * mve-ship send|receive URL: started by mve run --ship and mve follow --from, a process of its own
 * for what NATS' library does: its threads, its memory and its faults are not the monitor's.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>

#include "engine/ship/ship.h"

#define EXIT_USE	2
#define EXIT_SYSTEM	3

struct ship_page *page_map(void)
{
	void *page = mmap(NULL, sizeof(struct ship_page), PROT_READ | PROT_WRITE, MAP_SHARED,
			  SHIP_FD_PAGE, 0);

	return page == MAP_FAILED ? NULL : page;
}

void state_say(enum ship_state state, const char *words)
{
	static char said[1 + SHIP_WORDS];
	char now[1 + SHIP_WORDS] = { (char)('0' + state) };

	snprintf(now + 1, sizeof(now) - 1, "%s", words);
	if (!strcmp(said, now))
		return;
	strcpy(said, now);
	send(SHIP_FD_SOCKET, said, strlen(said), MSG_NOSIGNAL | MSG_DONTWAIT);
}

bool monitor_over(void)
{
	struct pollfd p = { .fd = SHIP_FD_SOCKET, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

void pause_grow(unsigned *ms, unsigned most)
{
	struct timespec t = { *ms / 1000, (long)(*ms % 1000) * 1000000 };

	nanosleep(&t, NULL);
	*ms = *ms * 2 < most ? *ms * 2 : most;
}

int main(int argc, char **argv)
{
	struct ship_page *page = argc == 3 ? page_map() : NULL;

	if (!page) {
		fputs("mve-ship is started by mve run --ship and mve follow --from\n", stderr);
		return EXIT_USE;
	}
	if (!strcmp(argv[1], "send"))
		return send_all(argv[2], page);
	if (!strcmp(argv[1], "receive"))
		return receive_all(argv[2], page);
	return EXIT_USE;
}
