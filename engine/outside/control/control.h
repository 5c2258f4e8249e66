/*
 * The control socket: who may speak with a session's monitor, and how.
 */
#ifndef MVE_OUTSIDE_CONTROL_H
#define MVE_OUTSIDE_CONTROL_H

#include <jansson.h>
#include <stdint.h>
#include <sys/un.h>

#include "engine/outside/monitor/monitor.h"
#include "engine/outside/session/session.h"

struct monitor;

/* --- the other commands (control_ask.c) ------------------------------------------- */

/* Asks and gives the answer, or NULL when the monitor does not answer. */
json_t *control_ask(const struct session *s, const char *what);
#define CONTROL_LATER		(-2)	/* no descriptor; what is asked may be answered later, */
#define CONTROL_LATER_MS	60000	/* by then */
/* The same with more than a word, and a descriptor, -1 or CONTROL_LATER; takes the reference. */
json_t *control_ask_json(const struct session *s, json_t *ask, int with);

/* --- the monitor (control.c) -------------------------------------------------------- */

int control_open(const struct session *s);
/* The loop is new, and is to hear of what comes. */
bool control_begin(struct monitor *m);
/* Somebody connects; a connection may be read, or written. */
void control_accept(struct monitor *m);
void control_go_on(struct monitor *m, uint64_t link);
/* The promotion that was asked for is over: it leads, or why not. */
void control_promoted(struct monitor *m, const char *why);
/* Ends those whose time is over. */
void control_look(struct monitor *m);
/* The socket's address, by the session's open folder, which the caller closes. */
int control_address(const struct session *s, struct sockaddr_un *a);

/* --- requests (control_serve.c) ------------------------------------------------------- */

/* The answer; NULL: it comes later.  `object`: the descriptor that came with it, or -1. */
json_t *control_serve(struct monitor *m, const json_t *ask, int object);
/* Of a promotion that is over; why: NULL, it leads. */
json_t *control_promotion(const char *why);
json_t *control_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* --- who asks (control_peer.c) -------------------------------------------------------- */

/* Why the process at the other end may not ask; NULL: it may. */
const char *control_peer_refused(struct monitor *m, int fd);

#endif
