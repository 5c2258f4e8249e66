/* The same file, where /proc/self and /proc/PID are one. */
static inline struct view kernel_name(struct view path)
{
	struct view name = view_from(path, 6);

	if (!view_begins(path, "/proc/") ||
	    !(view_begins(name, "self/") || (view_at(name, 0) >= '0' && view_at(name, 0) <= '9')))
		return path;
	return view_from(name, view_find(name, '/'));
}

static inline bool kernel_same(struct view a, struct view b)
{
	return view_same(kernel_name(a), kernel_name(b));
}
