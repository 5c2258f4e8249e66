#ifndef MVE_UPDATE_CONTROL_H
#define MVE_UPDATE_CONTROL_H

#include <sys/types.h>

#include "engine/update/points.h"

/* A thread that takes orders; false after a word. */
bool control_open(const char *path, struct image *image);
/* Gives one, prints the answer: 0, 1: no; 3: nobody is there. */
int control_ask(const char *path, int argc, char **argv);

/* update.c: the order itself; false with `why`.  `dry`: nothing is done but to say what. */
bool update_run(const char *new_path, const char *xform_path, unsigned limit_ms, bool dry,
	FILE *tell, char *why, size_t size);
void update_begin(struct image *image);
bool update_plan(struct migration *m);

/* rehearse.c: the same in a copy of the process, begun when all threads stand. */
struct rehearsal {
	pid_t pid;
	int from;
};

bool rehearsal_begin(struct rehearsal *r, struct migration *m);
/* What it said, to `tell`; false with `why`. */
bool rehearsal_end(struct rehearsal *r, FILE *tell, char *why, size_t size);

#endif
