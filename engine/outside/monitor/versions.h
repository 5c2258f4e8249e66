/* Areas, doorbells, and where a version's processes are. */
#ifndef MVE_OUTSIDE_VERSIONS_H
#define MVE_OUTSIDE_VERSIONS_H

#include "engine/outside/monitor/monitor.h"

int versions_make(struct monitor *m);
/* A row and an area; NULL options: of the session's own command. */
int version_make(struct monitor *m, const struct follower_options *o);
/* What its options say to the area of a follower. */
void version_ask(struct version *v, const struct follower_options *o);
/* Tells the inside of these that we live, from that row on; a session's first, or later ones. */
int versions_alive_hold(struct monitor *m, unsigned from);
/* Whether a child of ours has their areas: who has one is a process of the version. */
void versions_inherit(const struct monitor *m, bool inherit);
int version_bell_start(struct version *v);
/* What their bells have rung so far; how many there are. */
unsigned versions_heard(const struct monitor *m, uint32_t *heard);
#define SOON_US	20	/* for who is still on its way to sleep, and does not ring a second time */
/* Sleeps until one of them rings again, for so long; false: the kernel has no such sleep. */
bool versions_ring(const struct monitor *m, const uint32_t *heard, unsigned n, uint64_t us);
struct version *version_named(struct monitor *m, const char *name);
struct version *version_of_child(struct monitor *m, pid_t pid);
uint32_t version_slots(const struct version *v);
bool version_lives(const struct version *v);
/* A verdict was against it: if it has ended its user did not do that. */
bool version_judged(const struct version *v);
/*
 * The process that stands for the version, to be named and to be sent signals: the first,
 * and where that has ended the oldest that no other one of it has made.  0: none is left.
 */
pid_t version_head(const struct version *v);
/* When that began; 0: there is none. */
uint64_t version_head_began(const struct version *v);
/* A process of it lives, or is being born. */
bool version_alive(const struct version *v);
/* The kernel does not let us look into its head: it cannot take over, nor be replaced. */
bool version_closed(const struct version *v);
/* The same, as it was noted a moment ago: clients may wait. */
bool version_closed_lately(const struct version *v);
void version_closed_note(const struct version *v);
/* A child has been forked, and has no slot yet. */
bool version_births(const struct version *v);
bool version_owns(const struct version *v, pid_t pid, pid_t tid);
/* Kills every process of it; how many were there. */
unsigned version_kill(struct version *v);
/* And what has left it: all that it ever started, where there are cgroups. */
unsigned version_end(struct version *v);
/* A signal to this process, if it is the version's: true. */
bool version_signal_one(const struct version *v, pid_t pid, int sig);
bool version_kill_one(const struct version *v, pid_t pid);

#endif
