/* What the monitor does about followers' rules. */
#ifndef MVE_OUTSIDE_RULES_AT_WORK_H
#define MVE_OUTSIDE_RULES_AT_WORK_H

#include "engine/outside/monitor/monitor.h"

/* What the monitor does about followers' rules. */
/* Tells all areas of all versions: which of @old, @new, @leader and @follower hold. */
void rules_releases(struct monitor *m);
/* A leader that stays as a follower goes by the rules of the one that leads now. */
void rules_pass(const struct version *from, struct version *to);
/* A thread that is in the code of a rule for too long is told to leave it. */
void rules_look(struct monitor *m);
/* What a faulty rule is and did, from its slot. */
void rules_word(const struct slot *s, char *text, size_t size);
json_t *rules_json(const struct rule_note *n);

#endif
