/* Descriptions: how many numbers lead to each, as far as the process has copied them. */
#include "engine/core/must.h"
#include "engine/inside/fd/description.h"
#include "engine/inside/fd/table.h"
#include "engine/inside/gate/latch.h"
#include "engine/inside/gate/memory.h"

struct description {
	uint32_t numbers;	/* 0: free */
	uint32_t next;		/* free one, + 1 */
	bool is_set;		/* with registrations of ours */
};

static struct rows descriptions = ROWS_OF(struct description, FD_NUMBERS);
static uint32_t first_free;	/* + 1; 0: none */

_Static_assert(!(FD_NUMBERS & (FD_NUMBERS - 1)), "ROWS_OF");

static struct description *description_at(uint32_t n)
{
	MUST(n && n <= descriptions.used && latch_is_held(LATCH_epoll));
	return rows_at(&descriptions, n - 1);
}

int32_t description_of(int64_t fd)
{
	const struct fd_row *r = fd_row(fd);

	return r ? (int32_t)r->set : 0;
}

int32_t description_make(int64_t fd)
{
	struct fd_row *r = fd_row_make(fd);
	uint32_t n = first_free;

	MUST(latch_is_held(LATCH_epoll));
	if (!r || r->set)
		return r ? (int32_t)r->set : 0;
	if (n)
		first_free = description_at(n)->next;
	else if (rows_more(&descriptions))
		n = descriptions.used;
	if (n)
		*description_at(n) = (struct description){ .numbers = 1 };
	r->set = n;
	return (int32_t)n;
}

uint32_t description_numbers(const struct fd_row *r)
{
	return r->set ? description_at(r->set)->numbers : 0;
}

void description_is_set(int32_t description)
{
	description_at((uint32_t)description)->is_set = true;
}

int32_t description_leave(struct fd_row *r)
{
	uint32_t n = r->set;
	struct description *d = n ? description_at(n) : NULL;
	bool is_set = d && d->is_set;

	MUST(!d || d->numbers);
	r->set = 0;
	if (!d || --d->numbers)
		return 0;
	*d = (struct description){ .next = first_free };
	first_free = n;
	return is_set ? (int32_t)n : 0;
}

bool description_join(int64_t from, struct fd_row *to)
{
	uint32_t n = (uint32_t)description_make(from);

	MUST(!to->set);
	to->set = n;
	if (n)
		description_at(n)->numbers++;
	return n;
}

bool description_stays(int64_t fd)
{
	const struct fd_row *r = fd_row(fd);
	bool stays;

	if (!r || !r->set)
		return false;
	latch_take(LATCH_epoll);
	stays = description_numbers(r) > 1;
	latch_give(LATCH_epoll);
	return stays;
}
