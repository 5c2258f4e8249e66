/* The sections of another realm. */
#ifndef MVE_INSIDE_SECTIONS_H
#define MVE_INSIDE_SECTIONS_H

#include "engine/inside/gate/thread.h"

#define AF_UNIX_	1
#define SEQPACKET	5

struct files_limit {
	uint64_t now, max;
};

/* A process that has forbidden itself descriptors is let have some until it has been answered. */
struct files_limit files_allow(void);
void files_forbid(const struct files_limit *was);
/* `n` descriptors and `size` bytes that the monitor has sent: false: not just these. */
bool descriptors_receive(int socket, int32_t *fd, uint32_t n, void *bytes, uint64_t size);
/* The monitor's answer; what is in *fd is to be taken if it is a lane. */
long sections_ask(struct thread *t, uint64_t wants, uint64_t waited_ms, int32_t fd[VERSIONS]);
/* Maps and closes them. */
bool sections_take(const int32_t fd[VERSIONS]);
/* What was mapped there is gone in any case: zeros stand in its place, or nothing. */
bool sections_map(const int32_t fd[VERSIONS]);

#endif
