/*
 * The walk over the new state: no pointer of it leads into the old build or to memory that has
 * been given back.
 */
#include "engine/update/state/migrate.h"

#include <string.h>

#include "engine/update/heap.h"

static bool pointer_check(struct migration *m, const char *at, const char *in, const char *name)
{
	const struct object *o;
	size_t size;

	if ((uintptr_t)at < 4096 || (intptr_t)at < 0 || image_holds(m->new, at))
		return true;
	if (image_holds(m->old, at))
		return wrong(m, "in `%s`: %s leads into the old build", in, name);
	if (heap_base(at, &size))
		return true;
	o = object_find(m, at);
	if (o && o->new != o->old)
		return wrong(m, "in `%s`: %s leads to memory that is freed", in, name);
	return true;
}

static bool value_check(struct migration *m, const struct xform_pair *pair, const char *at,
	const char *in, const char *name)
{
	bool ok = true;

	if (pair->kind == XFORM_POINTER || pair->kind == XFORM_CODE)
		return pointer_check(m, *(char *const *)at, in, name);
	for (size_t i = 0; ok && pair->kind == XFORM_ARRAY && !pair->to->still &&
	     i < pair->new_count; i++)
		ok = value_check(m, pair->to, at + i * pair->to->new_size, in, name);
	for (unsigned long i = 0; ok && pair->kind == XFORM_STRUCT && i < pair->nfields; i++)
		if (!pair->fields[i].live && !pair->fields[i].flexible)
			ok = value_check(m, pair->fields[i].pair, at + pair->fields[i].to,
				pair->name, pair->fields[i].name);
	return ok;
}

bool migration_check(struct migration *m)
{
	bool ok = true;

	for (unsigned long i = 0; ok && i < m->x->nvariables; i++) {
		const struct xform_variable *v = &m->x->variables[i];

		if (v->pair && !v->constant)
			ok = value_check(m, v->pair, m->new->base + v->new_at, v->name, v->name);
	}
	for (size_t i = 0; ok && i < m->nobjects; i++)
		for (size_t k = 0; ok && !m->objects[i].pair->still && k < m->objects[i].count; k++)
			ok = value_check(m, m->objects[i].pair, m->objects[i].new +
				k * m->objects[i].pair->new_size, m->objects[i].pair->name, "it");
	return ok;
}
