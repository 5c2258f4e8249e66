/* What the rules for nginx need. */
#include "words.h"

static int64_t early_log = -1;	/* the leader's descriptor */

static inline bool is_reply(struct view v)
{
	return view_begins(v, "HTTP/1.");
}
