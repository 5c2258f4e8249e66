/* Requests that differ in how many spaces lie between their words, and in nothing else. */
static inline size_t spaces_after(struct view v, size_t at)
{
	while (view_at(v, at) == ' ')
		at++;
	return at;
}

static inline bool spaces_alike(struct view a, struct view b)
{
	size_t i = 0, j = 0;

	while (i < view_len(a) && view_at(a, i) == view_at(b, j)) {
		bool space = view_at(a, i) == ' ';

		i = space ? spaces_after(a, i) : i + 1;
		j = space ? spaces_after(b, j) : j + 1;
	}
	return i == view_len(a) && j == view_len(b);
}
