/* Memory that the leader's processes share with each other, and what a twin's have for it. */
#ifndef MVE_OUTSIDE_SHARES_H
#define MVE_OUTSIDE_SHARES_H

#include <stdint.h>
#include <sys/types.h>

/* All of them stand: what each has mapped; 0, -E2BIG: it is too much, or a negative errno. */
int shares_look(pid_t pid);
/* All have been looked at: there are files for it. */
int shares_make(void);
uint32_t shares_of(pid_t pid);
int shares_send(pid_t pid, int socket);
/* The files are the twin's alone. */
void shares_end(void);

#endif
