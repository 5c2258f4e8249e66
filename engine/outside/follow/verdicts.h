/* Verdicts and crashes: requests that wait, and policies. */
#ifndef MVE_OUTSIDE_VERDICTS_H
#define MVE_OUTSIDE_VERDICTS_H

#include "engine/outside/monitor/monitor.h"

#define REPLY_LATER	INT64_MIN	/* no answer yet */
int64_t verdict_serve(struct version *v, const struct request *r);
int64_t meant_serve(struct version *v, const struct request *r);
int64_t crashed_serve(struct version *v, const struct request *r);
int64_t exit_serve(struct version *v, const struct request *r);
/* The leader ends, or mve in it: held for its successor; 0: there is none. */
int64_t verdict_leader_ends(struct version *v, const struct request *r, const char *cause);
/* Its sanitizer ends it: if it leads, it is as if it crashed. */
int64_t sanitizer_ends(struct version *v, const struct request *r);
/* The request is answered later, after so long at the latest; false: no more can be held. */
bool hold(struct version *v, const struct request *r, unsigned ms);
/* Ends the hold of this request; false: nobody waits for its answer any more. */
bool held_take(struct version *v, const struct request *r);
/* What is held of this kind is not any more: who asks is to be served anew. */
void held_again(struct monitor *m, uint32_t kind);
/* They have been: what is not held again is answered, or asked anew. */
void held_served(struct monitor *m);
bool held_is(const struct monitor *m, const struct version *v, uint32_t slot);
/* Answers all that is held of this kind. */
void held_void(struct monitor *m, uint32_t kind, int64_t reply);
/* Lets threads that crashed or exit go to their end; pid 0: of all processes. */
bool held_leave(struct monitor *m, struct version *v, pid_t pid);
/* What a thread of the process has asked that has crashed; NULL: none has. */
const struct request *held_crashed(const struct monitor *m, pid_t pid);
/* Something of the kind is held of it; REQ_NONE: of any. */
bool held_any(const struct monitor *m, const struct version *v, uint32_t kind);
bool held_crash(const struct monitor *m, const struct version *v);
void held_forget(struct monitor *m, const struct version *v);
void held_look(struct monitor *m);
/* Runs a command of the user's that a follower's report is for; nobody waits for it. */
void hook_run(const struct version *v, const char *command, const char *report);

#endif
