/* Which part of the streams a process may write, by its rights. */
#ifndef MVE_OUTSIDE_REALMS_H
#define MVE_OUTSIDE_REALMS_H

#include "engine/outside/monitor/monitor.h"

/* Address space for the monitor's page and all sections behind it; NULL, and errno. */
void *realm_room(uint32_t chunks);
/* The sections of the first realm, whose page is mapped. */
int realm_sections(struct monitor *m);
/* All of them; no process has any. */
void realms_close(struct monitor *m);
/* One set of sections for all processes, whatever rights they have. */
static inline bool realm_is_one(const struct monitor *m)
{
	return m->one_realm || options_one_realm(m->options);
}

/* The process has the rights of the realm. */
bool realm_fits(const struct monitor *m, uint32_t realm, pid_t tid);
/* The first program's rights are those of the first realm. */
void realm_first(struct monitor *m, pid_t pid);
/* That of a process' rights, which may be made for it; or -errno. */
int realm_for(struct monitor *m, pid_t pid);
/*
 * A lane of the realm that the process belongs to, told to whom `was` is; -EAGAIN: when
 * followers have read more, and it has not waited for too long; else -errno, and they are
 * dropped.
 */
int64_t realm_lane(struct version *v, pid_t pid, uint32_t was, uint64_t waited_ms);
int64_t realm_serve(struct version *v, const struct request *r);

#endif
