/* What a stateless leader tells of a call. */
#ifndef MVE_INSIDE_SAMPLE_H
#define MVE_INSIDE_SAMPLE_H

#include "engine/core/walk.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/sample/scope.h"

/* What a stateless leader tells of a call. */
enum sample_way {
	SAMPLE_KEPT,
	SAMPLE_TOLD,
	SAMPLE_PASSED,		/* as an accept whose connection followers do not hear of */
};
/* It was made in a scope that is told. */
enum sample_way sample_made(struct thread *t, const struct walk *w, struct scope_row row);
/* It was made, and is kept. */
void sample_kept(struct thread *t, const struct walk *w, struct scope_row row);
/* What was put off is told now, before something else is. */
void sample_due(struct thread *t);

#endif
