/*
 * For a server that can be updated while it runs: docs/updating.md has it step by step.
 *
 * The server is built as a shared object (engine/update/update.mk) and run by mve-driver, which
 * offers these functions.  Built with MVE_UPDATE_NONE it is a program like any other.
 */
#ifndef MVE_UPDATE_H
#define MVE_UPDATE_H

#include <stdbool.h>
#include <stddef.h>

#ifndef MVE_UPDATE_NONE
/*
 * An update point: no request is half done here, no lock is held.  When an update is asked for
 * the thread waits here, and begins anew in the new code: at main(), or at the function that
 * it was created with.  There it runs to the point of the same name.  Calls that wait before
 * a point return EINTR when an update is asked for.
 */
void mve_update_point(const char *name);
/* This thread is on its way to its point in new code: what is set up already is left. */
bool mve_updating(void);
/* Any epoll_wait() is a point, named epoll_wait. */
void mve_update_epoll(bool on);
/*
 * Any pthread_cond_wait() and _timedwait() is one, named by the function: it gives its mutex up
 * and may return as if it had been woken.
 */
void mve_update_conditions(bool on);
/*
 * Called in this thread, by a handler of a signal and perhaps several times, when it is to come to
 * its point: what ends a library's loop, so that it comes back to ours.
 */
void mve_update_asked(void (*call)(void *arg), void *arg);
/*
 * Called when all threads stand, in the old code; when all have come to their points in the
 * new code; and in the old code when an update was asked for and given up.
 */
void mve_update_before(void (*call)(void));
void mve_update_after(void (*call)(void));
void mve_update_abort(void (*call)(void));
bool mve_local_keep(const char *function, const char *name, void *at, size_t size);

/* A local variable that lasts: true and its old value in new code, else it is noted. */
#define mve_local(name) ({ \
	static __attribute__((used)) char mve_local_of_##name; \
	mve_local_keep(__func__, #name, &(name), sizeof(name)); })

#else
static inline void mve_update_point(const char *name) { (void)name; }
static inline bool mve_updating(void) { return false; }
static inline void mve_update_epoll(bool on) { (void)on; }
static inline void mve_update_conditions(bool on) { (void)on; }
static inline void mve_update_asked(void (*call)(void *), void *arg) { (void)call, (void)arg; }
static inline void mve_update_before(void (*call)(void)) { (void)call; }
static inline void mve_update_after(void (*call)(void)) { (void)call; }
static inline void mve_update_abort(void (*call)(void)) { (void)call; }
#define mve_local(name) false
#endif

#endif
