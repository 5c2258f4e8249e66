/* A live update by a twin: its stages. */
#ifndef MVE_OUTSIDE_STAGES_H
#define MVE_OUTSIDE_STAGES_H

#include <jansson.h>

#include "engine/outside/monitor/monitor.h"

/* REQ_UPDATE. */
int64_t stages_serve(struct version *v, const struct request *r);
void stages_look(struct monitor *m);
/* Commands: NULL: it is begun, or done; else why not, and whether that passes. */
struct update_wish {
	const char *to, *xform;
	unsigned limit_ms, tries, pause_ms;
	uint64_t promote_ms, commit_ms, within_ms;
	bool dry;
	struct rules_bank *rules, *reverse;	/* taken, whatever comes of it */
};

const char *stages_update(struct monitor *m, const struct update_wish *w, bool *passes);
const char *stages_abort(struct monitor *m, bool *passes);
const char *stages_commit(struct monitor *m, bool *passes);
/* Who would lead next, by mve promote; NULL: nobody. */
struct version *stages_next(struct monitor *m);
/* The rules by which the old version follows; NULL: those of the new one. */
const struct rules_bank *stages_reverse(const struct monitor *m, const struct version *v);
/* Where a version died whose end was told by `why`. */
void stages_place(struct monitor *m, const char *why, const char *place);
/* The twin of an update is made, and nothing keeps its leader at its update points any more. */
void stages_leader_goes(struct monitor *m);
/* It is on its way into its new build, and reads nothing. */
bool stages_is_changing(const struct monitor *m, const struct version *v);
/* For status; NULL: there was none. */
json_t *stages_json(struct monitor *m);

#endif
