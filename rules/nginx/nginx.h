/* What the rules for nginx need. */
#include "words.h"

static inline bool is_reply(struct view v)
{
	return view_begins(v, "HTTP/1.");
}
