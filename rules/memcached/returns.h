/* The eventfds by which side threads give requests back to a worker. */
#define RETURNS_FDS	4096

static uint8_t returns[RETURNS_FDS];

static inline void returns_note(int64_t fd)
{
	if (fd >= 0 && fd < RETURNS_FDS)
		returns[fd] = 1;
}

static inline bool returns_is(int64_t fd)
{
	return fd >= 0 && fd < RETURNS_FDS && returns[fd];
}
