/*
 * Requests as they come: several in one piece, or one in several.  What a
 * connection is in the middle of is kept by its descriptor, and a piece is edited
 * only where a request's first word ends.
 */
#define STREAM_FDS	1024
#define STREAM_WORD	12	/* of a first word that is looked at */
#define STREAM_ROOM	8192

struct stream {
	uint8_t past;		/* the request's first word is over */
	uint8_t n;
	uint8_t word[STREAM_WORD];
};

static struct stream stream_of[STREAM_FDS];
static uint8_t stream_out[STREAM_ROOM];

static inline void stream_new(int64_t fd)
{
	if (fd >= 0 && fd < STREAM_FDS)
		stream_of[fd] = (struct stream){ 0 };
}

static inline bool stream_word_is(const struct stream *s, const char *text)
{
	return view_is(view_of(s->word, s->n), text);
}

/* What is put in behind a first word: version 1 leads. */
static inline const char *stream_old_adds(const struct stream *s, uint8_t end)
{
	if (stream_word_is(s, "PUT"))
		return end == '-' ? "-bad" : end == ' ' ? "-string" : "";
	return stream_word_is(s, "TYPE") ? "-bad" : "";
}

/* Version 2 leads: its own PUT of a string is the other's PUT; a plain PUT is no request. */
static inline const char *stream_new_adds(const struct stream *s)
{
	return stream_word_is(s, "PUT") ? "-bad" : "";
}

/* Then what comes behind "PUT" is held back until the word is over. */
static inline bool stream_holds(const struct stream *s)
{
	return !s->past && s->n > 3 && view_begins(view_of(s->word, s->n), "PUT-");
}

static inline size_t stream_put(size_t at, const char *text)
{
	while (*text && at < STREAM_ROOM)
		stream_out[at++] = (uint8_t)*text++;
	return at;
}

static inline bool stream_ends_word(uint8_t c, bool at_dash)
{
	return c == ' ' || c == '\r' || c == '\n' || (at_dash && c == '-');
}

/* One byte behind those before it: whether it is kept, and what comes before it. */
static inline const char *stream_take(struct stream *s, uint8_t c, bool old)
{
	const char *adds = "";

	if (!s->past && stream_ends_word(c, old)) {
		adds = old ? stream_old_adds(s, c) : stream_new_adds(s);
		s->past = 1;
	} else if (!s->past && s->n < STREAM_WORD) {
		s->word[s->n++] = c;
	}
	if (c == '\n')
		s->past = s->n = 0;
	return adds;
}

/* What was held back and is not the other's. */
static inline size_t stream_release(struct stream *s, size_t at)
{
	for (size_t i = 3; !stream_word_is(s, "PUT-string") && i < s->n && at < STREAM_ROOM; i++)
		stream_out[at++] = s->word[i];
	return at;
}

/* Version 2 leads. */
static inline struct view stream_edit_back(int64_t fd, struct view in)
{
	struct stream *s = fd >= 0 && fd < STREAM_FDS ? &stream_of[fd] : 0;
	size_t n = 0;

	for (size_t i = 0; s && i < view_len(in); i++) {
		uint8_t c = (uint8_t)view_at(in, i);
		bool held = stream_holds(s), full = s->n == STREAM_WORD;

		if (held && (full || stream_ends_word(c, false)))
			n = stream_release(s, n);
		s->past |= full;
		n = stream_put(n, stream_take(s, c, false));
		if (!stream_holds(s) && n < STREAM_ROOM)
			stream_out[n++] = c;
	}
	return s ? view_of(stream_out, n) : in;
}

static inline struct view stream_edit(int64_t fd, struct view in, bool old)
{
	struct stream *s = fd >= 0 && fd < STREAM_FDS ? &stream_of[fd] : 0;
	size_t n = 0;

	for (size_t i = 0; s && i < view_len(in); i++) {
		uint8_t c = (uint8_t)view_at(in, i);

		n = stream_put(n, stream_take(s, c, old));
		if (n < STREAM_ROOM)
			stream_out[n++] = c;
	}
	return s ? view_of(stream_out, n) : in;
}
