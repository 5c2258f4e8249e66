/*
 * Recording a session that runs.  A twin of its leader is taken, and sleeps, for its memory to be
 * written into the recording (foam/foam_task.c); the recorder's cursors are put where the leader
 * stood for that, and it reads on from there.  So a replay makes a process of the image, and
 * feeds it what is recorded.
 *
 * What cannot be is said before anything is touched.  What a session was asked for is what it
 * is now: its options are others from then on.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/outside/foam/foam_task.h"
#include "engine/outside/kernel/folder.h"
#include "engine/outside/kernel/process.h"
#include "engine/outside/kernel/rights.h"
#include "engine/outside/foam/record_late.h"
#include "engine/outside/late/rows.h"
#include "engine/outside/late/twin.h"
#include "engine/outside/record/recorder.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/streams.h"
#include "engine/outside/monitor/versions.h"

#define PARTS		4	/* of what is kept, with an image each, if that can be */
#define AGAIN_MS	1000	/* what is against an image may have passed */

/* A filter may refuse what is needed to make it again. */
static bool is_filtered(const struct version *v)
{
	bool any = v->area->filters || process_filtered(v->server);

	for (uint32_t i = 0; i < version_slots(v) && !any; i++)
		any = v->area->slot[i].owner && process_filtered(v->area->slot[i].pid);
	return any;
}

/* Its row may have been a follower's. */
static bool row_in_use(struct monitor *m)
{
	return m->versions > ROW_LOG && !m->logs && !row_is_free(m, &m->version[ROW_LOG]);
}

/* What has no image. */
static const char *leader_barred(struct monitor *m)
{
	const struct version *v = leading(m);

	if (is_filtered(v))
		return "it has a filter of its own (seccomp)";
	if (m->realms > 1)
		return "its processes have different rights, and it was begun to be followed: "
		       "give --record to mve run";
	return NULL;
}

static const char *barred(struct monitor *m)
{
	if (recorder_is())
		return "it is recorded already";
	if (m->options->replay)
		return "it is a replay";
	if (m->options->from_start)
		return "it keeps all from its start (--from-start)";
	if (options_seams(m->options))
		return "it was started with --mark";
	if (m->options->ship)
		return "it is shipped";
	if (row_in_use(m))
		return "the recorder's place is taken by a follower: drop one";
	return leader_barred(m);
}

static const char *folder_refused(const char *path, int result)
{
	static char text[WHY_MAX];

	snprintf(text, sizeof(text), "%s: %s", path, result == -EEXIST ? "a recording is there" :
		 folder_why(-result));
	return text;
}

static struct {
	uint32_t number;	/* of the last image */
	uint64_t next_ms;	/* when another is due; 0: not known yet */
	uint64_t again_ms;	/* none is taken before: it was tried in vain */
	uint64_t bytes;		/* that were written when the last one was taken */
	bool off;		/* none can be had: it was said */
} further;

/* The recorder begins where the twin was taken. */
static void begin(struct monitor *m, const struct run_options *like)
{
	static struct run_options now;
	static char *folder;

	free(folder);
	folder = strdup(like->record);
	MUST(folder);
	now = *like;
	now.record = folder;
	m->options = &now;
	further = (typeof(further)){ .number = 0 };
	recorder_late_begin(m);
	wakes_look(m);
}

/* Nothing came of it. */
static void undo(struct monitor *m, const struct run_options *like, bool made)
{
	m->logs = false;
	m->one_realm &= m->conduct != NULL;
	recorder_late_drop();
	if (made)
		rmdir(like->record);
}

bool record_begin(struct monitor *m, const struct run_options *like, uint64_t *stood_us, char *why,
		  size_t size, bool *passes)
{
	struct follower_options asleep = { .asleep = ASLEEP_FIRST };
	bool writes = foam_task_is();
	const char *no = writes ? "the image of one that has ended is still written" :
			 recorder_ends() ? "its last recording is just ending" : barred(m);
	bool made = access(like->record, F_OK) < 0;
	uint64_t recording[2];
	int result = no ? 0 : recorder_late_open(like->record), folder;

	*passes = writes || recorder_ends();
	if (result && made)
		rmdir(like->record);
	if (result)
		no = folder_refused(like->record, result);
	snprintf(why, size, "%s", no ? no : "");
	if (no)
		return false;
	MUST(!m->options->replay && !recorder_is() && like->record);
	m->logs = true;
	/* A recording is of one. */
	m->one_realm |= !m->conduct;
	folder = recorder_late_folder(recording);
	foam_task_want(folder, recording, 0);
	if (!twin_begin(m, &asleep, stood_us, why, size, passes)) {
		undo(m, like, made);
		return false;
	}
	begin(m, like);
	return true;
}

/* --- and now and then another ----------------------------------------------------------- */

static const char *further_take(struct monitor *m, bool *passes)
{
	struct follower_options asleep = { .asleep = ASLEEP_LATER };
	static char why[WHY_MAX];
	uint64_t recording[2], stood_us = 0;
	const char *no = leader_barred(m);
	int folder;

	*passes = false;
	if (no)
		return no;
	folder = recorder_late_folder(recording);
	foam_task_want(folder, recording, further.number + 1);
	if (!twin_begin(m, &asleep, &stood_us, why, sizeof(why), passes))
		return why;
	further.number++;
	return NULL;
}

/* The time is over, or there is so much that what the last one begins will soon be dropped. */
static bool is_due(const struct monitor *m)
{
	const struct record_bounds *b = &m->options->bounds;

	return now_ms() >= further.next_ms ||
	       (b->last && b->bytes && recorder_bytes() - further.bytes > b->bytes / PARTS);
}

void record_images_look(struct monitor *m)
{
	uint64_t each = m->options->images_ms, now = now_ms(), written;
	bool passes;
	const char *why;

	if (!each || further.off || !recorder_is() || recorder_cuts() || foam_task_is() ||
	    m->finishing || leading(m)->gone)
		return;
	further.next_ms = further.next_ms ? further.next_ms : now + each;
	if (now < further.again_ms || !is_due(m))
		return;
	written = recorder_bytes();
	why = further_take(m, &passes);
	if (why && passes) {
		further.again_ms = now + AGAIN_MS;
		return;
	}
	further.bytes = written;
	further.next_ms = now + each;
	further.off = why;
	if (further.off && version_alive(leading(m)))
		say_error("the recording goes on without", "%s: no further image: %s",
			  m->session.name, why);
}
