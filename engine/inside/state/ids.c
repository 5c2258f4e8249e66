/*
 * Ids of processes and threads.  A version that took over goes on with the ids
 * of the leader before it: what the program holds, prints and sends are those,
 * while the kernel knows others.  Arguments and results of the table's kind PID
 * are translated at each call (ids_call.c); a version that led from the start pays nothing.
 * One that has followed translates in all its threads: also one that has its own id may know
 * another's that was made when this version followed.
 *
 * A process knows its own threads and children.  Of others the slots of the version's area
 * have both ids; but each process of the version can write there, and a signal sent to
 * what a slot says could hit anybody's process: the monitor is asked whether it is one of
 * the version's.
 */
#include <asm/unistd.h>
#include <linux/errno.h>

#include "engine/abi/table.h"
#include "engine/core/walk.h"
#include "engine/inside/gate/block.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/memory.h"
#include "engine/inside/gate/request.h"
#include "engine/inside/gate/ways.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/signal/ucontext.h"
#include "engine/inside/state/children.h"
#include "engine/inside/state/ids.h"

static const struct area *area(void)
{
	return (const struct area *)boot.area;
}

static uint32_t slots(void)
{
	uint32_t high = area()->slots_high;

	return high < AREA_THREADS ? high : AREA_THREADS;
}

static uint64_t *id_word(int32_t id)
{
	return &((struct area *)boot.area)->id_held[(uint32_t)id / 64 % (IDS_KERNEL / 64)];
}

/*
 * The id is a thread's or process's of the leader before, which is gone: the kernel will give it
 * to another that this version makes, while the program means its own by it.
 */
static void id_hold(int32_t id, int32_t real)
{
	if (id > 0 && id < IDS_KERNEL && id != real)
		__atomic_fetch_or(id_word(id), 1ull << id % 64, __ATOMIC_RELAXED);
}

/*
 * How the program is to know one that has just been made: by the kernel's id, or, where that
 * is held, by one that the kernel gives to nobody.  Parent and child find the same.
 */
int32_t id_born(int32_t id)
{
	if (ids_are_ours() || !(__atomic_load_n(id_word(id), __ATOMIC_RELAXED) >> id % 64 & 1))
		return id;
	return id | IDS_KERNEL;
}

static void ids_hold(const struct thread *t)
{
	const struct thread *o;

	id_hold(t->vpid, t->pid);
	for (uint32_t i = 0; (o = block_next(&i)); i++)
		id_hold(o->vtid, o->tid);
	children_each(id_hold);
}

static bool translated;	/* by the ways that this process' calls take */

static void ids_translate(void)
{
	if (translated)
		return;
	for (long nr = 0; nr + 1 < SLOT_CALLS; nr++)
		if (call_has(call_find(nr), TRAIT_HOT) && call_has_ids(call_find(nr)))
			way_set((unsigned)nr + 1, WAY_LONG);
	translated = true;
}

/* Clients wait when it comes to lead, and to go through all calls takes a while. */
void ids_ready(const struct thread *t)
{
	MUST(t->following && t->vpid > 0);
	ids_translate();
	pages_own(id_word(t->vpid), 1);
}

/* The version takes over, or will follow: from here on ids are translated (ids_call.c). */
void ids_begin(struct thread *t)
{
	ids_hold(t);
	__atomic_store_n(&((struct area *)boot.area)->ids, 1, __ATOMIC_RELAXED);
	ids_translate();
}

/* Of a thread of this process, by what it believes or by what the kernel says; or NULL. */
static const struct thread *own_thread(int32_t id, bool believed)
{
	const struct thread *o;

	for (uint32_t i = 0; (o = block_next(&i)); i++)
		if ((believed ? o->vtid : o->tid) == id)
			return o;
	return NULL;
}

#define KNOWN	64

/* The parent's is the kernel's word; others are asked for once. */
static bool is_known(struct thread *t, int32_t tid)
{
	static int32_t known[KNOWN];
	int32_t *row = &known[(uint32_t)tid % KNOWN];

	if (*row == tid || OWN0(__NR_getppid) == tid)
		return true;
	if (request_ask(t, REQ_KNOWN, (uint64_t)tid, 0, 0) <= 0)
		return false;
	*row = tid;
	return true;
}

/* Of another process of the version's; 0: none is known by this id. */
static int32_t slot_real(struct thread *t, int32_t id)
{
	for (uint32_t i = 0; i < slots(); i++) {
		const struct slot *s = &area()->slot[i];
		int32_t tid = (int32_t)s->owner;	/* read once */

		if (tid > 0 && s->vtid == id && tid != id)
			return is_known(t, tid) ? tid : 0;
	}
	return 0;
}

/* The kernel's id for one of this version that the program knows; 0: it has none. */
int32_t id_own(struct thread *t, int32_t id)
{
	const struct thread *own;
	int32_t child;

	if (id <= 0)
		return 0;
	if (id == t->vpid)
		return t->pid;
	child = child_real(id);
	own = child ? NULL : own_thread(id, true);
	return own ? own->tid : child ? child : slot_real(t, id);
}

/* The same; others' ids are what they are.  A negative one is a group's, by its first process. */
int32_t id_real(struct thread *t, int32_t id)
{
	int32_t own = id_own(t, id < -1 ? -id : id);

	if (!own)
		return id;
	return id < -1 ? -own : own;
}

/* The id that the program knows for the kernel's. */
int32_t id_seen(int32_t id)
{
	int32_t child = id > 0 ? child_seen(id) : id;
	const struct thread *own = child ? NULL : own_thread(id, false);

	for (uint32_t i = 0; !child && !own && i < slots(); i++) {
		const struct slot *s = &area()->slot[i];

		if (s->owner == (uint32_t)id && s->vtid)
			return s->vtid;
	}
	return own && own->vtid ? own->vtid : child ? child : id;
}

/* A signal's sender. */
void ids_info(uint8_t *info)
{
	int32_t *pid = (int32_t *)(info + INFO_PID);

	if (info_int(info, INFO_SIGNO) == 17 || info_int(info, INFO_CODE) <= 0)
		*pid = id_seen(*pid);
}
