/*
 * mve-ship, from its monitor's side: what it is started with, what it says, its end.
 */
#ifndef MVE_OUTSIDE_SHIP_COURIER_H
#define MVE_OUTSIDE_SHIP_COURIER_H

#include <stdbool.h>
#include <sys/types.h>

#include "engine/abi/ship.h"

struct courier {
	const char *mode, *url;
	struct ship_page *page;
	int page_fd, folder, socket;	/* socket: -1: it does not run */
	pid_t pid;
	enum ship_state state;
	char words[SHIP_WORDS];		/* the last that it said */
};

/* The page, for a folder that becomes the courier's; 0 or a negative errno. */
int courier_open(struct courier *c, const char *mode, const char *url, int folder);
/* It is to be found; else what to do about it was said. */
bool courier_there(void);
int courier_start(struct courier *c);
/* What it has said: 1; nothing: 0; it has ended: -1. */
int courier_hear(struct courier *c);
/*
 * Nothing more is wanted of it, and it ends: by itself, for as long as it gets on with what is
 * left, or else by our hand.  What it leaves is removed.
 */
void courier_end(struct courier *c);
/* Where it ships to, without anybody's password. */
void courier_name(const struct courier *c, char *text, size_t size);

#endif
