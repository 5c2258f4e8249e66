/* A server of a session of mve's: updates by a twin. */
#ifndef MVE_UPDATE_SESSION_H
#define MVE_UPDATE_SESSION_H

/* A thread that hears of them; without mve, or where it does not want them, there is none. */
void session_begin(const char *build);
/* The calling thread is about to stand at its point. */
void session_point(void);

#endif
