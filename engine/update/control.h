#ifndef MVE_UPDATE_CONTROL_H
#define MVE_UPDATE_CONTROL_H

#include <sys/types.h>

#include "engine/update/points.h"

/* A thread that takes orders; false after a word. */
bool control_open(const char *path);
/*
 * Gives one, prints the answer: 0, 1: no; 3: nobody is there.  What was refused for its moment
 * alone is asked again up to `tries` times, each `pause_ms` later.
 */
struct patience {
	unsigned tries, pause_ms;
};

/* update or dry, two files, and perhaps a limit. */
bool control_is_order(int argc, char **argv);
int control_ask(const char *path, struct patience patience, int argc, char **argv);

enum update_end { UPDATE_DONE, UPDATE_REFUSED, UPDATE_LATER };

/* update.c: the order itself; else `why`.  `dry`: nothing is done but to say what. */
enum update_end update_run(const char *new_path, const char *xform_path, unsigned limit_ms,
	bool dry, FILE *tell, char *why, size_t size);
void update_begin(struct image *image);
/* The build that runs. */
const struct image *update_image(void);
/*
 * In a twin of the server, all of whose threads stand: the state is brought into the new build,
 * where they begin anew and stand again.  Else it is neither's.
 */
enum update_end update_twin(const char *new_path, const char *xform_path, unsigned limit_ms,
	FILE *tell, char *why, size_t size);
/* All threads stand, and what is known of them alone is read; they go on by points_go_on(). */
bool update_stop(unsigned limit_ms, char *why, size_t size);
bool update_plan(struct migration *m);
/* All that was planned, threads' arguments, too; what has moved is freed, and looked for. */
bool update_fill(struct migration *m);

/* rehearse.c: the same in a copy of the process, begun when all threads stand. */
struct rehearsal {
	pid_t pid;
	int from;
};

bool rehearsal_begin(struct rehearsal *r, struct migration *m);
/* What it said, to `tell`; else `why`. */
enum update_end rehearsal_end(struct rehearsal *r, FILE *tell, char *why, size_t size);

#endif
