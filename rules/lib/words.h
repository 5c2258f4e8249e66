/* Content that is the same but for some words. */
#ifndef RULES_WORDS_H
#define RULES_WORDS_H

/* Is text v from byte `at` on? */
static inline bool text_here(struct view v, size_t at, const char *text)
{
	return view_begins(view_from(v, at), text);
}

/* The same bytes, but that each `old` of a is `now` in b. */
static inline bool same_but(struct view a, struct view b, const char *old, const char *now)
{
	size_t old_len = view_text_len(old), now_len = view_text_len(now), i = 0, j = 0;

	while (i < view_len(a) && j < view_len(b)) {
		if (view_at(a, i) == old[0] && text_here(a, i, old) && text_here(b, j, now)) {
			i += old_len;
			j += now_len;
		} else if (view_at(a, i++) != view_at(b, j++)) {
			return false;
		}
	}
	return i == view_len(a) && j == view_len(b);
}

#endif
