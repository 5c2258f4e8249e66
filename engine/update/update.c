/*
 * An update, from the order to the new build at work: a rehearsal in a copy (rehearse.c), then
 * the same in the server.
 *
 * Until the state is filled every failure leaves the old build as it was: its threads go on
 * from their points.  Once it is being filled there is no way back in this process, and what
 * goes wrong ends it.  In a session of mve's that is a twin of the server (session.c), which
 * has been copied where its threads stand, and needs no rehearsal.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "engine/update/control.h"
#include "engine/update/session.h"
#include "engine/update/state/epoll.h"

static struct image *now;
static struct migration *migration;

void update_begin(struct image *image)
{
	now = image;
}

void *mve_migrated(const void *old)
{
	return migration ? migrated(migration, old) : NULL;
}

static bool no(char *why, size_t size, const char *what)
{
	snprintf(why, size, "%s", what);
	return false;
}

static const struct xform *xform_load(const char *path, void **handle, char *why, size_t size)
{
	const struct xform *x;

	*handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	x = *handle ? dlsym(*handle, "mve_xform") : NULL;
	if (!x) {
		snprintf(why, size, "%s", *handle ? "no transformation: make one by mve-xform" :
			dlerror());
		return NULL;
	}
	if (x->version == XFORM_VERSION)
		return x;
	no(why, size, "the transformation is another release's: make it anew by mve-xform");
	return NULL;
}

static bool fits(const struct xform *x, const struct image *new, char *why, size_t size)
{
	if (strcmp(x->old_id, now->id))
		return no(why, size, "the transformation is not from the build that runs");
	if (strcmp(x->new_id, new->id))
		return no(why, size, "the transformation does not lead to this new build");
	return true;
}

/* The kernel, or mve in its place, has the addresses of signals' handlers. */
static void handlers_fill(struct migration *m)
{
	for (int signal = 1; signal < NSIG; signal++) {
		struct sigaction a;
		void *is;

		if (sigaction(signal, NULL, &a) < 0)
			continue;
		is = migrated_code(m, (void *)a.sa_handler);
		if (is == (void *)a.sa_handler)
			continue;
		a.sa_handler = (void (*)(int))is;
		sigaction(signal, &a, NULL);
	}
}

bool update_fill(struct migration *m)
{
	if (!migration_fill(m))
		return false;
	points_fill(m);
	epoll_fill(m);
	migration_leave(m);
	return migration_check(m);
}

/* From here on there is no way back in this process. */
static enum update_end fill(struct migration *m, struct image *new, unsigned limit_ms, char *why,
	size_t size)
{
	if (!update_fill(m) || !epoll_set(m)) {
		no(why, size, m->why);
		return m->later ? UPDATE_LATER : UPDATE_REFUSED;
	}
	handlers_fill(m);
	/* Where threads stood, and how long they had, is the moment's. */
	if (!points_restart(new, limit_ms, why, size))
		return UPDATE_LATER;
	now = new;
	return UPDATE_DONE;
}

static void commit(struct migration *m, struct image *new, unsigned limit_ms)
{
	char why[WHY_SIZE] = "";

	if (fill(m, new, limit_ms, why, sizeof(why)) != UPDATE_DONE) {
		fprintf(stderr, "mve-driver: the update failed, and its state is neither's: %s\n",
			why);
		abort();
	}
	points_go_on();
}

const struct image *update_image(void)
{
	return now;
}

bool update_plan(struct migration *m)
{
	migration = m;
	points_call(POINT_BEFORE, now);
	m->locals = points_locals();
	return migration_plan(m) && points_plan(m) && objects_plan(m) && epoll_plan(m);
}

bool update_stop(unsigned limit_ms, char *why, size_t size)
{
	return points_stop(limit_ms, why, size) && epoll_read(why, size);
}

/* Everything but the last step, in a copy. */
static enum update_end rehearse(struct migration *m, unsigned limit_ms, FILE *tell, char *why,
	size_t size)
{
	struct rehearsal r;
	bool begun;

	if (!update_stop(limit_ms, why, size)) {
		points_go_on();
		return UPDATE_LATER;
	}
	begun = rehearsal_begin(&r, m);
	points_go_on();
	if (begun)
		return rehearsal_end(&r, tell, why, size);
	snprintf(why, size, "%s", m->why);
	return UPDATE_REFUSED;
}

static enum update_end carry_out(struct migration *m, struct image *new, unsigned limit_ms,
	char *why, size_t size)
{
	struct image *old = now;
	bool stand = update_stop(limit_ms, why, size), ok = stand && update_plan(m);

	if (ok) {
		commit(m, new, limit_ms);
	} else {
		if (stand) {
			snprintf(why, size, "%s", m->why);
			points_call(POINT_ABORT, old);
		}
		points_go_on();
	}
	epoll_forget();
	migration = NULL;
	return ok ? UPDATE_DONE : !stand || m->later ? UPDATE_LATER : UPDATE_REFUSED;
}

static enum update_end loaded_run(const struct xform *x, struct image *new, unsigned limit_ms,
	bool dry, FILE *tell, char *why, size_t size)
{
	struct migration m = { .x = x, .old = now, .new = new, .is_stack = points_are_stack };
	enum update_end end = rehearse(&m, limit_ms, tell, why, size);

	if (end == UPDATE_DONE && !dry)
		end = carry_out(&m, new, limit_ms, why, size);
	migration_free(&m);
	return end;
}

/* A new build and a transformation that fits; what is to be kept of them, or let go. */
struct wanted {
	struct image *new;
	void *handle;
	const struct xform *x;
};

static bool wanted_load(struct wanted *w, const char *new_path, const char *xform_path, char *why,
	size_t size)
{
	*w = (struct wanted){ .new = calloc(1, sizeof(*w->new)) };
	if (w->new && image_load(w->new, new_path, why, size))
		w->x = xform_load(xform_path, &w->handle, why, size);
	return w->x && fits(w->x, w->new, why, size);
}

static void wanted_free(struct wanted *w, bool runs)
{
	if (w->handle)
		dlclose(w->handle);
	if (w->new && !runs) {
		image_drop(w->new);
		free(w->new);
	}
}

enum update_end update_run(const char *new_path, const char *xform_path, unsigned limit_ms,
	bool dry, FILE *tell, char *why, size_t size)
{
	enum update_end end = UPDATE_REFUSED;
	struct wanted w;

	if (wanted_load(&w, new_path, xform_path, why, size))
		end = loaded_run(w.x, w.new, limit_ms, dry, tell, why, size);
	wanted_free(&w, end == UPDATE_DONE && !dry);
	return end;
}

enum update_end update_twin(const char *new_path, const char *xform_path, unsigned limit_ms,
	FILE *tell, char *why, size_t size)
{
	enum update_end end;
	struct wanted w;
	struct migration m;

	session_does("at the loading of the new build");
	if (!wanted_load(&w, new_path, xform_path, why, size))
		return UPDATE_REFUSED;
	session_does("in the transformation");
	m = (struct migration){ .x = w.x, .old = now, .new = w.new, .is_stack = points_are_stack };
	if (update_plan(&m)) {
		migration_tell(&m, tell);
		end = fill(&m, w.new, limit_ms, why, size);
	} else {
		no(why, size, m.why);
		end = m.later ? UPDATE_LATER : UPDATE_REFUSED;
	}
	migration = NULL;
	migration_free(&m);
	wanted_free(&w, true);
	return end;
}
