/*
 * What the monitor's loop wakes for.  One thread waits, by epoll, which every kernel and
 * every container has; wakes are handed out one after the other.
 */
#ifndef MVE_OUTSIDE_WAKES_H
#define MVE_OUTSIDE_WAKES_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct monitor;

enum wake {
	WAKE_SIGNAL = 1, WAKE_BELL, WAKE_CONTROL, WAKE_LINK,
	WAKE_TRACE,	/* there is room for lines of it again */
	WAKE_RECORDER,	/* it has said something, or has ended */
	WAKE_SPILLER,	/* the same */
	WAKE_SHIP,	/* the same of mve-ship */
	WAKE_LOOK,	/* four times a second, where somebody is looked after */
};

struct wakes {
	int fd;			/* the epoll set */
	uint64_t once_ms, look_ms;	/* the next of each; or 0 */
};

/* A set of this process' own: a copy of the monitor waits for nothing of the original's. */
int wakes_open(struct monitor *m);
/*
 * The loop is woken once when the file has something of `events`; `which`: up to 56 bits.
 * False: there is no memory for it.
 */
bool monitor_poll(struct monitor *m, int fd, short events, enum wake what, uint64_t which);
/* The loop comes round after so long. */
void monitor_wake_after(struct monitor *m, unsigned ms);
/* WAKE_LOOK comes once more. */
void wakes_look(struct monitor *m);
/* Waits for a wake and serves what has come; false: a wait is impossible. */
bool wakes_wait(struct monitor *m, void (*serve)(struct monitor *m, enum wake, uint64_t which));
uint64_t now_ms(void);
/* That much later than now, by the same clock. */
struct timespec clock_after(uint64_t us);

#endif
