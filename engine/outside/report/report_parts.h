/*
 * Between the files that make a report (report_make.c, report_differ.c,
 * report_words.c) and tell it (report_text.c).  Nobody else includes this.
 */
#ifndef MVE_OUTSIDE_REPORT_PARTS_H
#define MVE_OUTSIDE_REPORT_PARTS_H

#include "engine/outside/report/report.h"
#include "engine/outside/report/view.h"

#define NEXT_MAX	4	/* of the leader's calls behind the one in question */

/* What the parts of the making share. */
struct making {
	const struct report_want *w;
	json_t *report;
	struct call_print print;
	struct window_row last;		/* the row that the verdict is about, */
	struct report_event met[1 + NEXT_MAX];	/* its event and those behind it */
	unsigned mets;
	bool whole;		/* met[0] is the last row's */
};

/* The row met an event of its own call. */
static inline bool row_met_own(const struct window_row *row)
{
	return row->event.kind == EVENT_CALL && row->event.call == row->call;
}

/* The bytes of its event's payload that the row has. */
static inline size_t row_have(const struct window_row *row)
{
	return row->event.size < sizeof(row->payload) ? row->event.size : sizeof(row->payload);
}

static inline const char *text_of(const json_t *j, const char *key)
{
	const char *text = json_string_value(json_object_get(j, key));

	return text ? text : "";
}

static inline json_int_t number_of(const json_t *j, const char *key)
{
	return json_integer_value(json_object_get(j, key));
}

/* What k->print holds. */
json_t *report_printed(struct making *k);

/* report_differ.c: the argument that differs, or null. */
json_t *report_argument(struct making *k);

/* report_suggest.c: a rule for what differs, when all but the summary is there; or
 * null, and why there is none. */
json_t *report_suggest(struct making *k, const char **why);

/* report_words.c: the summary, when all other fields are there. */
json_t *report_words(const struct making *k);

#endif
