/* Sockets by which the leader listens already and the follower will. */
#define LISTENING	64
#define NAME_BYTES	28

static struct {
	int64_t fd;
	int64_t family;
	uint8_t len;
	uint8_t name[NAME_BYTES];
	bool theirs, given;
} listening[LISTENING];
static unsigned listening_n;

static inline void listening_add(int64_t fd, int64_t family)
{
	if (fd < 0 || listening_n == LISTENING)
		return;
	listening[listening_n].fd = fd;
	listening[listening_n].family = family;
	listening[listening_n++].theirs = true;
}

/* The leader sets it up. */
static inline bool listening_theirs(int64_t fd)
{
	for (unsigned i = 0; i < listening_n; i++)
		if (listening[i].fd == fd && listening[i].theirs)
			return true;
	return false;
}

static inline void listening_over(int64_t fd)
{
	for (unsigned i = 0; i < listening_n; i++)
		if (listening[i].fd == fd)
			listening[i].theirs = false;
}

/* Only what a name can hold is kept; another is no name at all. */
static inline void listening_name(int64_t fd, struct view name)
{
	for (unsigned i = 0; i < listening_n; i++) {
		if (listening[i].fd != fd || view_len(name) > NAME_BYTES)
			continue;
		listening[i].len = (uint8_t)view_len(name);
		for (size_t k = 0; k < view_len(name); k++)
			listening[i].name[k] = (uint8_t)view_at(name, k);
	}
}

/* The next one for the follower; listening_n: none. */
static inline unsigned listening_next(int64_t family)
{
	unsigned i = 0;

	while (i < listening_n && (listening[i].given || listening[i].family != family))
		i++;
	return i;
}

static inline int64_t listening_give(int64_t family)
{
	unsigned i = listening_next(family) % LISTENING;

	listening[i].given = true;
	return listening[i].fd;
}

static inline bool listening_given(int64_t fd)
{
	for (unsigned i = 0; i < listening_n; i++)
		if (listening[i].fd == fd && listening[i].given)
			return true;
	return false;
}

static inline bool listening_same(int64_t fd, struct view name)
{
	for (unsigned i = 0; i < listening_n; i++)
		if (listening[i].fd == fd && listening[i].given)
			return view_same(name, view_of(listening[i].name, listening[i].len));
	return false;
}

static inline void listening_done(int64_t fd)
{
	for (unsigned i = 0; i < listening_n; i++)
		if (listening[i].fd == fd && listening[i].given)
			listening[i].fd = -1;
}
