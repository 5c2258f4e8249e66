/*
 * What libstdc++ does to a list's links.  Of those that it is given it writes to their neighbours,
 * too, which are a variable of the program's where a list begins and ends: all are saved here, and
 * as it is done here nothing of a library's memory need be looked at.
 */
#include "engine/checkpoint/seam/calls.h"

static void written(struct list_link *link)
{
	seam_written(link, sizeof(*link));
}

static void join(struct list_link *link, struct list_link *next)
{
	written(link);
	written(next);
	link->next = next;
	next->prev = link;
}

void mve_seam_list_hook(struct list_link *link, struct list_link *next)
{
	join(next->prev, link);
	join(link, next);
}

void mve_seam_list_unhook(struct list_link *link)
{
	join(link->prev, link->next);
}

/* What begins at first, and ends before last, comes to stand before next. */
void mve_seam_list_transfer(struct list_link *next, struct list_link *first, struct list_link *last)
{
	struct list_link *end = last->prev;

	if (next == last)
		return;
	join(first->prev, last);
	join(next->prev, first);
	join(end, next);
}

void mve_seam_list_reverse(struct list_link *head)
{
	struct list_link *link = head;

	do {
		struct list_link was = *link;

		written(link);
		*link = (struct list_link){ .next = was.prev, .prev = was.next };
		link = was.next;
	} while (link != head);
}

/* A head of no list is its own neighbour. */
static void head_put(struct list_link *head, struct list_link its, const struct list_link *was)
{
	if (its.next == was)
		its = (struct list_link){ head, head };
	join(head, its.next);
	join(its.prev, head);
}

void mve_seam_list_swap(struct list_link *one, struct list_link *other)
{
	struct list_link its = *one;

	head_put(one, *other, other);
	head_put(other, its, one);
}
