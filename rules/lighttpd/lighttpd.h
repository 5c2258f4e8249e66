/* What the rules for lighttpd need. */
#include "words.h"

static inline bool is_reply(struct view v)
{
	return view_begins(v, "HTTP/1.");
}

static int64_t log_fd = -1;

/* How long the name of a release is that begins here; 0: none does. */
static inline size_t release_len(struct view v, size_t at)
{
	size_t n = view_text_len("lighttpd/");

	if (!text_here(v, at, "lighttpd/"))
		return 0;
	while (view_at(v, at + n) == '.' || (view_at(v, at + n) >= '0' && view_at(v, at + n) <= '9'))
		n++;
	return n;
}

/* The same bytes, but for the release. */
static inline bool same_but_release(struct view a, struct view b)
{
	size_t i = 0, j = 0;

	while (i < view_len(a) && j < view_len(b)) {
		size_t n = release_len(a, i), m = release_len(b, j);

		if (n && m) {
			i += n;
			j += m;
		} else if (view_at(a, i++) != view_at(b, j++)) {
			return false;
		}
	}
	return i == view_len(a) && j == view_len(b);
}

/* The same line of a log, but for the time, the place in the source, and the release. */
static inline bool same_log(struct view a, struct view b)
{
	return same_but_release(view_from(a, view_find(a, ')')), view_from(b, view_find(b, ')')));
}

/* The lines of a reply's head, each with its \r\n. */
static inline struct view reply_head(struct view v)
{
	size_t at = 0;

	while (at < view_len(v) && !view_begins(view_from(v, at), "\r\n\r\n"))
		at++;
	return view_sub(v, 0, at + 2);
}

/* The line at `at`, with its \n. */
static inline struct view line_at(struct view v, size_t at)
{
	return view_sub(v, at, view_find(view_from(v, at), '\n') + 1);
}

/* Seconds since midnight, in "Date: Sat, 21 Nov 2026 22:23:17 GMT". */
static inline int64_t date_seconds(struct view line)
{
	return (view_number(view_from(line, 23)) * 60 + view_number(view_from(line, 26))) * 60 +
	       view_number(view_from(line, 29));
}

/*
 * Each reads the clock once a turn, the one before it waits and the other behind: they may
 * be as far apart as a turn is long.
 */
#define TURN_SECONDS	5

static inline bool date_near(struct view a, struct view b)
{
	int64_t apart = date_seconds(a) - date_seconds(b);

	if (!view_begins(a, "Date: ") || !view_begins(b, "Date: "))
		return false;
	if (apart < 0)
		apart = -apart;
	return view_same(view_sub(a, 0, 23), view_sub(b, 0, 23)) ? apart <= TURN_SECONDS
								 : apart >= 86400 - TURN_SECONDS;
}

/* Does a field have the same name? */
static inline bool same_field(struct view a, struct view b)
{
	return view_same(view_sub(a, 0, view_find(a, ':')), view_sub(b, 0, view_find(b, ':')));
}

/* The line of a head that has the field, or none. */
static inline struct view field_of(struct view head, struct view line)
{
	for (size_t at = 0; at < view_len(head); at += view_len(line_at(head, at)))
		if (same_field(line_at(head, at), line))
			return line_at(head, at);
	return view_none();
}

/* Each line of a is in b. */
static inline bool has_fields(struct view a, struct view b)
{
	for (size_t at = 0; at < view_len(a); at += view_len(line_at(a, at))) {
		struct view line = line_at(a, at), other = field_of(b, line);

		if (!view_same(line, other) && !date_near(line, other) &&
		    !(view_begins(line, "Server: ") && same_but_release(line, other)))
			return false;
	}
	return true;
}

/*
 * The same reply, but for the order of its fields, the release (all are equally long), and
 * where a second ends.
 */
static inline bool same_reply(struct view a, struct view b)
{
	struct view head = reply_head(a), own = reply_head(b);

	return view_len(head) == view_len(own) && has_fields(head, own) && has_fields(own, head) &&
	       view_same(view_from(a, view_len(head)), view_from(b, view_len(own)));
}

/* Files that the leader has open. */
#define FILES	65536

static uint8_t file_open[FILES];

static inline bool file_is(int64_t fd)
{
	return fd >= 0 && fd < FILES && file_open[fd];
}

static inline void file_opened(int64_t fd)
{
	if (fd >= 0 && fd < FILES)
		file_open[fd] = 1;
}

static inline void file_closed(int64_t fd)
{
	file_open[fd] = 0;
}

static inline int64_t number_at(struct view v, size_t at)
{
	return view_at(v, at) | view_at(v, at + 1) << 8 | view_at(v, at + 2) << 16;
}
