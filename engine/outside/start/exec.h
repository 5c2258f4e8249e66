/* Programs on their way through execve. */
#ifndef MVE_OUTSIDE_EXEC_H
#define MVE_OUTSIDE_EXEC_H

#include "engine/outside/monitor/monitor.h"
#include "engine/outside/patch/patch.h"

/* REQ_EXEC: a thread is about to execute a program. */
int64_t exec_serve(struct version *v, const struct request *r);
/* The execve has failed, or will not be made. */
void exec_failed(struct monitor *m, pid_t tid);
/* Adds to what is known of a program how its sites were patched. */
void exec_count(struct version *v, uint64_t image, const struct patch_sum *sum);
/* A thread that is about to execute a program is to become what `want` says. */
int exec_seize_as(struct version *v, pid_t tid, const struct tracee *want);
/* Of a program of this version, whose thread follows, or does not. */
enum role exec_role(const struct version *v, bool follows);
/* Of a process that has begun without us (attach/): what it is given, and that it has it. */
struct inject_want exec_want(struct version *v);
void exec_attached(struct version *v, pid_t pid, uint64_t base);
/* One is under way. */
bool exec_any(const struct monitor *m);
/* This process of the version is: it has no area until the program stands ready. */
bool exec_is_under_way(const struct version *v, pid_t pid);
/* Stops and ends of children. */
void exec_children(struct monitor *m);
/* Programs that stand until their files are planned go on: those that need not, or all. */
void exec_go_on(struct monitor *m, bool now);
/* Programs that stand until there is a lane for them. */
void exec_look(struct monitor *m);
/* What was done beside the loop is done: who waits for it is served. */
void exec_beside(struct monitor *m);
/*
 * Of it the stops alone: a takeover has begun, and whose end has come is looked at later.
 * No program waits for a plan now.
 */
void exec_stops(struct monitor *m);

#endif
