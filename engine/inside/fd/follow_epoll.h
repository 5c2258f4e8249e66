/* Whose data is whose in epoll sets. */
#ifndef MVE_INSIDE_FOLLOW_EPOLL_H
#define MVE_INSIDE_FOLLOW_EPOLL_H

#include "engine/core/walk.h"
#include "engine/inside/fd/numbers.h"
#include "engine/inside/gate/thread.h"

void epoll_changed(const struct walk *call, const uint8_t leaders[12]);
/* What kept.def says of them. */
void epoll_gone(struct thread *t, struct numbers n);
void epoll_copied(int64_t from, int64_t to);
void epoll_answered(const struct walk *call);
/* A stateless leader's: who is registered with which data. */
void epoll_noted(const struct walk *call);
/* What a wait has brought of which followers know: nothing, connections to accept, or more. */
enum brings { BRINGS_NOTHING, BRINGS_CLIENTS, BRINGS_KNOWN };
/* Followers know this descriptor, and whether connections come from it. */
typedef bool epoll_test(int32_t fd, bool *listens);
enum brings epoll_brings(const struct walk *call, epoll_test *knows);
/* Takes what this version never registered out of an answer; what is left. */
int64_t epoll_known(const struct walk *call);
/* Where a peer sends no more there is something to read, also if the leader did not wait for it. */
void epoll_ends(const struct walk *call);
/* The descriptor is registered somewhere. */
bool epoll_has(int32_t fd);
/* The leader's data are those of a registration of the descriptor. */
bool epoll_is_of(int32_t epfd, uint64_t leaders, int32_t fd);
/* One event of a descriptor, for a wait that no event answers; how many. */
int64_t epoll_make(const struct walk *call, int32_t fd, uint32_t events);
/* Our own registration has changed, and the leader's has not. */
void epoll_own(const struct walk *call);
/* A registration with the kernel's data: what stands for them here; it is another from now on. */
uint64_t epoll_data_own(int32_t epfd, uint64_t kernels);
bool epoll_data_is(int32_t epfd, int32_t fd, uint64_t kernels, uint64_t own);
bool epoll_is_wait(long nr);
void epoll_led(struct thread *t, const struct walk *call, long nr);
/* Before a leader's epoll_ctl, and behind it. */
void epoll_lead(struct thread *t, uint64_t args[CALL_ARGS], long nr);
void epoll_lead_end(struct thread *t, long result);
extern uint32_t *epoll_places;
/* A leader that followed before has registrations that were made by another. */
static inline bool epoll_inherited(void)
{
	return epoll_places;
}
/* A follower's: no registration found its table full. */
bool epoll_all_known(void);

#endif
