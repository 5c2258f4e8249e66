/* A server of a session of mve's: updates by a twin. */
#ifndef MVE_UPDATE_SESSION_H
#define MVE_UPDATE_SESSION_H

#include <stdbool.h>
#include <stdint.h>

/* A thread that hears of them; without mve, or where it does not want them, there is none. */
void session_begin(const char *build);
/* The calling thread is about to stand at its point. */
void session_point(void);
/* What a twin is at from here on, for who asks why it went no further. */
void session_does(const char *what);
/* In a twin that changes: the call that was refused last; NULL: none. */
const char *session_refused(void);
/* Where mve finds a thread of it, for the word why it went no further; 0: nowhere. */
uint64_t session_place_of(int tid);
/* This is a twin that changes. */
bool session_is_twin(void);
/*
 * mve may put other data in the place of the kernel's in what epoll_wait() answers: which; and
 * in a twin, that they are these from here on.  False with errno.
 */
void session_epoll_own(int set, int fd, uint64_t kernels, uint64_t *own);
bool session_epoll_is(int set, int fd, uint64_t kernels, uint64_t own);

#endif
