/* What of a process is against its coming to have followers, and what becomes of its code. */
#ifndef MVE_OUTSIDE_COMPANY_CODE_H
#define MVE_OUTSIDE_COMPANY_CODE_H

#include "engine/abi/request.h"
#include "engine/outside/monitor/monitor.h"

/* Of a process: why it cannot be told of, and whether that goes by itself; NULL: it can. */
const char *company_barred(pid_t pid, bool *passes);
/*
 * Its code is changed, of a process that stands and has asked (COMPANY_BEGIN), and what the
 * process is to know of it is in *s.  Without `s`: whether it could be; -EAGAIN: a thread is
 * within what would change.
 */
int company_code(struct monitor *m, const struct request *r, struct company_start *s);

#endif
