/* A follower's image: taken as the stream goes on, and woken where the follower differs. */
#ifndef MVE_OUTSIDE_REWIND_H
#define MVE_OUTSIDE_REWIND_H

#include "engine/outside/monitor/monitor.h"

/* Sets a word of `images` in a brief, and wakes who sleeps on it. */
void rewind_word_set(uint32_t *word, uint32_t value);
/* REQ_IMAGE. */
int64_t rewind_serve(struct version *v, const struct request *r);
/* The follower differs: true: it will try again, and the verdict is none yet. */
bool rewind_try(struct version *v, const struct request *r);
/* What it differs in is held, and reads nothing: its image is not let go for that. */
void rewind_held(struct version *v);
/* The ring has had no room for the image that it keeps. */
bool rewind_has_lost(const struct version *v);
/* It has tried again, and differs where it did: it need not wait for what the leader does. */
bool rewind_is_again(const struct version *v, const struct request *r);
/* How often the event was met at which it differs, once rewind_try() has said no. */
unsigned rewind_tried(const struct version *v, const struct request *r);
/* Whether the version is to keep an image, and how much is read between two. */
void rewind_begin(struct version *v);
/* What is under way goes on, or has had its time. */
void rewind_look(struct monitor *m);
/* One of them is on its way back: whoever wants it to lead waits a moment. */
bool rewind_busy(const struct monitor *m);
/* It has no threads of its own at the moment. */
static inline bool rewind_is_on(const struct version *v)
{
	return v->rewind.state > REWIND_STANDS && v->state == VERSION_FOLLOWS;
}
/* It follows no more, or another is about to lead: nothing is kept of it. */
void rewind_end(struct version *v);
/* The same of all, while clients wait: nothing goes back to an image, which ends behind that. */
void rewind_forget_all(struct monitor *m);
/* Those that were forgotten end. */
void rewind_over(struct monitor *m);
/* A child has ended: true: it was an image. */
bool rewind_ended(struct monitor *m, pid_t pid);
/* For status. */
json_t *rewind_json(const struct version *v);

/* cursors.c: where the image stands in the streams. */
bool cursors_are_leaders(const struct version *v);
void cursors_keep(struct version *v, uint32_t image);
/* It has gone back to the image, and may have to again; or that is over. */
void cursors_need(struct version *v, bool needed);
/* Put back; false: the leader has not kept what the image has still to read. */
bool cursors_restore(struct version *v, uint32_t image, uint32_t copy);
void cursors_forget(struct version *v);
/* The leader keeps what the image has still to read. */
bool cursors_are_kept(const struct version *v, uint32_t image);

#endif
