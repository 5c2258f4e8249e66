/* What a follower's sanitizer says, from draft to report. */
#ifndef MVE_OUTSIDE_FINDINGS_H
#define MVE_OUTSIDE_FINDINGS_H

#include "engine/outside/monitor/monitor.h"
#include "engine/outside/report/finding.h"

int64_t reported_serve(struct version *v, const struct request *r);
/* One that needs no draft: equal ones are counted.  It is changed, and stays the caller's. */
void findings_add(struct version *v, uint32_t slot, json_t *finding,
		  const struct finding_request *request);
/* The thread's process ends: was that because of a finding? */
bool findings_end(struct version *v, pid_t tid);
/* A thread of the version is at a report: what others differ in may be its delay. */
bool findings_busy(const struct version *v);
/* Says so if findings are asked of a program that has no sanitizer. */
void findings_runtime_look(struct version *v);
/* Keeps what is complete; is more to come? */
bool findings_look(struct monitor *m);
void findings_close(struct monitor *m);

#endif
