/*
 * A fresh program is given, by calls made in its name: one private mapping high
 * up near the libraries with the inside image, room for boards and the first
 * thread's block; the session area, sent over a socket pair since nothing else
 * is sure to reach a process that may live in another root; the streams, if there
 * are followers; boards near the program itself; and our vDSO in its auxiliary
 * vector.  Then its first thread
 * is sent to inside_start.  Nothing of ours stays open in it.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "engine/abi/boot.h"
#include "engine/abi/brief.h"
#include "engine/abi/ring.h"
#include "engine/abi/rollback.h"
#include "engine/core/must.h"
#include "engine/outside/follow/runtime.h"
#include "engine/outside/kernel/maps.h"
#include "engine/outside/session/near.h"
#include "engine/outside/kernel/remote.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/patch/board.h"
#include "engine/outside/patch/hook.h"
#include "engine/outside/patch/mapped.h"
#include "engine/outside/patch/patch.h"
#include "engine/outside/plan/plan.h"
#include "engine/outside/start/auxv.h"
#include "engine/outside/start/image.h"
#include "engine/outside/start/inject_parts.h"
#include "engine/outside/start/program.h"
#include "engine/outside/start/vdso.h"

/* --- what the inside is told --------------------------------------------------- */

static int boot_write(struct injection *in)
{
	const struct inside_image *im = inside_image();
	struct boot *b = &in->boot;

	MUST(b->locals <= BOOT_LOCALS && b->parts <= BOOT_PARTS && b->runtimes <= b->parts);
	MUST(board_room_fits(&in->libraries) && board_room_fits(&b->near_program));
	b->magic = BOOT_MAGIC;
	b->image = in->want->image;
	b->tier = in->want->tier;
	b->key = in->want->key;
	b->role = in->want->role;
	b->area = in->area;
	b->text = in->base + im->patch_from;
	b->text_len = im->own_to - im->patch_from;
	b->boards = in->boards;
	b->boards_len = LIBRARY_BOARDS;
	b->block = in->block;
	b->hidden = in->want->hidden;
	b->entry = in->r.regs.rip;
	b->stack = in->r.regs.rsp;
	b->streams = in->streams;
	b->version = in->want->version;
	b->lane = in->want->lane;
	b->realm = in->want->realm;
	b->vpid = in->want->vpid;
	b->shelf_len = in->shelf.len;
	b->shelf_moved = in->shelf.moved;
	b->moves = in->shelf.moves;
	memcpy(b->move, in->shelf.move, sizeof(b->move));
	return memory_write(in->r.memory, in->base + im->boot, b, sizeof(*b));
}

/* --- the auxiliary vector ----------------------------------------------------- */

/* A word of the fresh stack, which is read by the page. */
static int stack_word(struct injection *in, uint64_t at, uint64_t *word)
{
	uint64_t page = at & ~0xfffull;
	int result = 0;

	MUST(at - page + sizeof(*word) <= sizeof(in->stack));
	if (page != in->stack_page)
		result = memory_read(in->r.memory, page, in->stack, sizeof(in->stack));
	in->stack_page = result ? 0 : page;
	if (!result)
		memcpy(word, in->stack + (at - page), sizeof(*word));
	return result;
}

/* The auxiliary vector on a fresh stack, whose pointer is aligned; false when it has no end. */
static bool auxv_find(struct injection *in)
{
	uint64_t at = in->r.regs.rsp, word = 0;

	if (at % 8 || stack_word(in, at, &word))
		return false;
	at += 8 * (word + 2);		/* argc, argv and its NULL */
	do {
		if (stack_word(in, at, &word))
			return false;
		at += 8;
	} while (word);
	in->auxv = at;
	do {
		if (stack_word(in, at, &word))
			return false;
		at += 16;
	} while (word != AT_NULL && at - in->auxv < AUXV_MAX);
	in->auxv_len = at - in->auxv;
	MUST(in->auxv_len <= AUXV_MAX);
	return word == AT_NULL;
}

static void vdso_replace(struct injection *in, uint64_t at, uint64_t vdso)
{
	vdso_functions(in->r.memory, vdso, in->boot.vdso);
	if (!in->boot.vdso[VDSO_CLOCK_GETTIME])
		return;
	in->vdso.at = at;
	in->vdso.was = vdso;
	memory_write(in->r.memory, at, &in->base, 8);
}

void auxv_change(struct injection *in)
{
	uint64_t at = in->auxv, pair[2];

	for (; at < in->auxv + in->auxv_len && !stack_word(in, at, &pair[0]) &&
	       !stack_word(in, at + 8, &pair[1]); at += 16) {
		if (pair[0] == AT_SYSINFO_EHDR && !in->want->leaves)
			vdso_replace(in, at + 8, pair[1]);
		else if (pair[0] == AT_RANDOM && in->want->chunks)
			memory_write(in->r.memory, pair[1], in->want->random,
				     sizeof(in->want->random));
	}
}

/* A program that could not be readied runs with what the kernel gave it. */
static void vdso_restore(struct injection *in)
{
	if (in->vdso.at)
		memory_write(in->r.memory, in->vdso.at, &in->vdso.was, 8);
}

/* --- the code that is there already ------------------------------------------ */

static int boards_near(struct injection *in, const struct map *m, uint64_t need,
		       struct board_room *room)
{
	uint64_t hole = need ? maps_hole_near(&in->maps, m->start, m->end, need) : 0;
	long at;

	MUST(!(need % BOARD_ALIGN));
	if (!hole)
		return -ENOMEM;
	at = REMOTE(&in->r, SYS_mmap, hole, need, PROT_READ | PROT_EXEC,
		    ANON | MAP_FIXED_NOREPLACE, (uint64_t)-1, 0);
	if (failed(at))
		return (int)at;
	*room = (struct board_room){ (uint64_t)at, need, 0 };
	/* One that is counted and has no row keeps mve detach from leaving. */
	if (in->boot.rooms++ < BOOT_ROOMS)
		in->boot.room[in->boot.rooms - 1] = *room;
	return 0;
}

static bool in_reach(uint64_t boards, const struct map *m)
{
	uint64_t low = m->start < boards ? m->start : boards;
	uint64_t high = m->end > boards + LIBRARY_BOARDS ? m->end : boards + LIBRARY_BOARDS;

	return high - low < 0x7ff00000;
}

static bool is_ours(const struct injection *in, const struct map *m)
{
	return (m->start >= in->base && m->start < in->block + BLOCK_BYTES) ||
	       m->start - in->boot.shelf < in->shelf.len;
}

/* A program on a file system that may not answer: what the kernel knows of it. */
static void far_inspect(struct program_file *p, pid_t pid, const char *exe)
{
	int fd = open(exe, O_PATH | O_CLOEXEC);
	struct statx x;

	if (fd >= 0 && !statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &x)) {
		p->inode = x.stx_ino;
		mapped_interpreter(pid, p->inode, p->interpreter, &p->dynamic);
	}
	if (fd >= 0)
		close(fd);
}

/* What a vector says of where its headers are: that map's file is the program. */
static const struct map *program_map(struct injection *in)
{
	uint64_t at = in->auxv, what, value = 0;

	for (; at < in->auxv + in->auxv_len; at += 16)
		if (!stack_word(in, at, &what) && what == AT_PHDR)
			stack_word(in, at + 8, &value);
	for (size_t i = 0; value && i < in->maps.n; i++)
		if (in->maps.map[i].start <= value && value < in->maps.map[i].end)
			return &in->maps.map[i];
	return NULL;
}

#define KNOWN	8	/* programs; a server starts the same again and again */

/* What a file says of its interpreter, if it is what it was. */
static void file_inspect(struct program_file *p, const struct near_file *f)
{
	static struct { struct stat st; struct program_file file; } known[KNOWN];
	static unsigned next;
	int fd;

	for (unsigned i = 0; i < KNOWN; i++)
		if (known[i].file.inode && plan_same_file(&known[i].st, &f->st)) {
			*p = known[i].file;
			return;
		}
	p->inode = f->st.st_ino;
	fd = near_read(f->fd);
	if (fd < 0)
		return;
	p->dynamic = program_interpreter(fd, p->interpreter, sizeof(p->interpreter));
	close(fd);
	known[next].st = f->st;
	known[next++ % KNOWN].file = *p;
	next %= KNOWN;
}

/* Looked at once: the file cannot change while its process stands still. */
static void program_inspect(struct injection *in)
{
	const struct map *m = program_map(in);
	struct near_file f;
	char exe[64];
	int result;

	snprintf(exe, sizeof(exe), "/proc/%d/exe", in->r.pid);
	result = m && m->inode ? mapped_find(in->r.pid, m, &f) : near_open(exe, &f);
	if (!result && f.far) {
		near_close(&f);
		result = -EAGAIN;
	}
	if (result == -EAGAIN)
		far_inspect(&in->program, in->r.pid, exe);
	if (result)
		return;
	file_inspect(&in->program, &f);
	near_close(&f);
}

static bool is_program(const struct injection *in, const struct map *m)
{
	return m->inode && m->inode == in->program.inode && !is_ours(in, m);
}

/* Its code is written: calls are made in one of its pages. */
static bool calls_pause(struct injection *in, const struct map *m)
{
	return m->start <= in->r.at && in->r.at < m->end && !remote_pause(&in->r);
}

static void calls_resume(struct injection *in, bool paused)
{
	if (paused)
		remote_resume(&in->r);	/* if it fails all that comes does */
}

/*
 * A dynamic program's own calls are marked, not patched, until they prove hot:
 * only its own code is what it might copy.  Go's does not, and it has threads
 * before a call could be hot.
 */
static void plan_use(struct injection *in, const struct map *m, struct plan *p, bool dynamic)
{
	struct board_room own = { 0 }, none = { 0 }, *room = &in->libraries;
	bool paused;

	if (!in_reach(in->boards, m)) {		/* without room: marks only */
		boards_near(in, m, patch_room_needed(p, m), &own);
		room = own.len ? &own : room;
	}
	MUST(in->want->tier == TIER_PATCH);
	if (dynamic && is_program(in, m) && !p->go) {
		if (own.len)	/* a mapping without calls needs none */
			in->boot.near_program = own;
		room = &none;
	}
	paused = calls_pause(in, m);
	patch_planned(in->r.pid, in->r.memory, m, p, room, &in->sum, &in->shelf);
	calls_resume(in, paused);
}

static void map_patch(struct injection *in, const struct map *m, bool dynamic)
{
	struct plan *p;

	if (patch_plan(in->r.pid, in->r.memory, m, &p)) {
		in->sum.unclean = true;
		return;
	}
	plan_use(in, m, p, dynamic);
	plan_free(p);
}

/*
 * The dynamic loader finds another version's libraries in other places: its
 * calls are nobody's twin.  It may be the program itself, told to load another one.
 */
static void loader_note(struct injection *in)
{
	for (size_t i = 0; i < in->maps.n; i++) {
		const struct map *m = &in->maps.map[i];

		if (m->exec && m->inode && runtime_is_loader(m->path) &&
		    in->boot.locals < BOOT_LOCALS)
			in->boot.local[in->boot.locals++] =
				(struct code_range_at){ m->start, m->end };
	}
}

static void code_patch(struct injection *in)
{
	bool dynamic = in->program.dynamic;

	in->sum.twins = in->want->chunks;
	for (size_t i = 0; i < in->maps.n; i++) {
		const struct map *m = &in->maps.map[i];

		if (!m->exec || is_ours(in, m) || !strcmp(m->path, "[vsyscall]"))
			continue;
		map_patch(in, m, dynamic);
	}
	/* A program that runs has its pages watched: guest_watch(). */
	in->boot.sealed = in->sum.unclean || in->sum.vsyscall ||
			  (in->sum.guards && !in->r.way) ? SEAL_BROKEN : SEAL_WHOLE;
}

static void map_hook(struct injection *in, const struct map *m, enum hook_file file,
		     struct board_room *room)
{
	bool paused = calls_pause(in, m);

	hook_map(in->r.pid, in->r.memory, m, file, room);
	calls_resume(in, paused);
}

/*
 * The locks of a static program, and what a runtime within a program has in their place;
 * those of libraries come with them.
 */
static void code_hook(struct injection *in)
{
	enum hook_file file = in->program.dynamic ? HOOK_RUNTIME : HOOK_STATIC;
	struct board_room own = { 0 };

	if (file == HOOK_RUNTIME && !in->boot.runtimes)
		return;
	maps_free(&in->maps);	/* there are boards by now */
	if (maps_read(in->r.pid, &in->maps))
		return;
	for (size_t i = 0; i < in->maps.n; i++) {
		const struct map *m = &in->maps.map[i];

		if (!m->exec || !is_program(in, m))
			continue;
		if (in_reach(in->boards, m))
			map_hook(in, m, file, &in->libraries);
		else if (!boards_near(in, m, HOOKS_ROOM, &own))
			map_hook(in, m, file, &own);
	}
}

/* The functions of the program with which a request begins. */
static void seams_hook(struct injection *in)
{
	const char *const *name = in->want->seam;
	uint64_t need = 0;
	bool paused;

	while (name && *name++)
		need += HOOK_BOARD_MAX;
	if (!need)
		return;
	maps_free(&in->maps);
	if (maps_read(in->r.pid, &in->maps))
		return;
	for (size_t i = 0; i < in->maps.n; i++) {
		const struct map *m = &in->maps.map[i];
		struct board_room own = { 0 }, *room = &in->libraries;

		if (!m->exec || !is_program(in, m))
			continue;
		if (!in_reach(in->boards, m)) {
			room = &own;
			if (boards_near(in, m, need, room))
				continue;
		}
		paused = calls_pause(in, m);
		for (name = in->want->seam; *name; name++)
			hook_function(in->r.pid, in->r.memory, m, *name, room);
		calls_resume(in, paused);
	}
}

/* A sanitizer's runtime that the program was linked with. */
static void runtime_note(struct injection *in)
{
	struct code_range_at range[RUNTIME_RANGES];
	struct boot *b = &in->boot;

	for (size_t i = 0; i < in->maps.n; i++) {
		const struct map *m = &in->maps.map[i];
		unsigned n = m->exec && is_program(in, m) ?
			     runtime_in_program(in->r.pid, m, range) : 0;
		uint64_t unwind = n ? runtime_unwind(in->r.pid, m) : 0;

		*in->want->runtime |= n != 0;
		if (n && (b->sigaction = runtime_sigaction(in->r.pid, m)))
			*in->want->puts_off |= 1u << in->want->version;
		for (unsigned k = 0; k < n && b->parts < BOOT_PARTS; k++) {
			b->part[b->parts++] = (struct code_part){
				range[k].from, range[k].to, unwind, PART_RUNTIME, 0,
			};
			b->runtimes++;
		}
	}
}

/* Made several times in each request, by code that nobody copies: it gets its jump at once, so that
 * children and threads have it, too. */
static void checkpoints_patch(struct injection *in, const struct map *m, uint64_t call)
{
	struct board_room *room = &in->boot.near_program;
	bool paused = room->len && calls_pause(in, m);

	if (room->len && !patch_site(in->r.pid, in->r.memory, call, room)) {
		in->sum.patched++;
		in->sum.trapped--;
	}
	calls_resume(in, paused);
}

/* The runtime of checkpoints: its calls are each version's own. */
static void checkpoints_note(struct injection *in)
{
	struct boot *b = &in->boot;

	for (size_t i = 0; i < in->maps.n; i++) {
		const struct map *m = &in->maps.map[i];
		struct checkpoint_runtime r = { 0 };

		if (m->exec && is_program(in, m))
			r = runtime_of_checkpoints(in->r.pid, m);
		if (!r.contract || b->locals >= BOOT_LOCALS ||
		    !runtime_checkpoints_fit(in->r.pid, &r, in->want->rollbacks))
			continue;
		b->local[b->locals++] = r.kernel;
		if (!in->want->rollbacks)
			continue;
		b->rollback = r.contract;
		++*in->want->rollbacks;
		checkpoints_patch(in, m, r.kernel.to - ROLLBACK_KERNEL_END);
	}
}

/* In the trap tier nothing is changed; only the old page needs to be known of. */
static void code_look(struct injection *in)
{
	for (size_t i = 0; i < in->maps.n; i++) {
		const struct map *m = &in->maps.map[i];
		struct plan *p;

		if (!m->exec || !m->inode || is_ours(in, m) ||
		    patch_plan(in->r.pid, in->r.memory, m, &p))
			continue;
		in->sum.vsyscall |= p->vsyscall;
		plan_free(p);
	}
}

/* --- all of it ---------------------------------------------------------------- */

static void row_fill(const struct injection *in)
{
	const struct inside_image *im = inside_image();
	struct image *row = in->want->row;
	struct stat st;
	char name[64];
	ssize_t n;

	*row = (struct image){ .pid = in->r.pid, .sites_patched = in->sum.patched,
			       .sites_trapped = in->sum.trapped,
			       .sealed = in->boot.sealed, .inside = in->base,
			       .inside_len = im->memory_len };
	snprintf(name, sizeof(name), "/proc/%d/exe", in->r.pid);
	n = readlink(name, row->exe, sizeof(row->exe) - 1);
	row->exe[n < 0 ? 0 : n] = 0;
	if (!stat(name, &st)) {
		row->dev = st.st_dev;
		row->ino = st.st_ino;
	}
}

/*
 * The leader's is told, a follower's is made like it.  What is mapped is read before ours is,
 * and once, unless it is moved.
 */
static int layout_take(struct injection *in)
{
	int result = 0;

	MUST(in->want->role != ROLE_FOLLOWER || !in->want->chunks || in->want->wish);
	in->maps = *in->want->maps;
	*in->want->maps = (struct maps){ 0 };
	if (!in->maps.n)
		result = maps_read(in->r.pid, &in->maps);
	if (result || !in->want->chunks)
		return result;
	if (in->want->role != ROLE_FOLLOWER) {
		layout_read(&in->r, &in->maps, &in->boot.layout);
		return 0;
	}
	layout_settle(&in->r, &in->maps, in->want->wish, &in->moved);
	maps_free(&in->maps);
	return maps_read(in->r.pid, &in->maps);
}

static int prepare(struct injection *in)
{
	int result = layout_take(in);

	if (!result && !auxv_find(in))
		in->auxv_len = 0;
	if (!result)
		result = shared_map(in);
	if (result)
		return result;
	program_inspect(in);
	loader_note(in);
	in->libraries = (struct board_room){ in->boards, LIBRARY_BOARDS, 0 };
	if (in->want->tier == TIER_PATCH)
		code_patch(in);
	else
		code_look(in);
	if (in->want->chunks) {
		runtime_note(in);
		code_hook(in);
		seams_hook(in);
	}
	checkpoints_note(in);
	in->boot.boards_used = in->libraries.used;
	if (in->sum.vsyscall)
		vsyscall_catch(in);
	in->boot.filtered = in->sum.vsyscall;
	in->boot.attached = in->want->leaves;
	auxv_learn(&in->told, in->auxv_result, &in->r, in->auxv, in->auxv_len);
	row_fill(in);
	return boot_write(in);
}

int inject_running(struct injection *in)
{
	int result = layout_take(in);

	MUST(in->r.way && !in->want->chunks);
	if (!result)
		result = shared_map(in);
	if (result)
		return result;
	program_inspect(in);
	loader_note(in);
	in->libraries = (struct board_room){ in->boards, LIBRARY_BOARDS, 0 };
	checkpoints_note(in);
	in->boot.attached = in->boot.between = 1;
	in->boot.sealed = SEAL_WHOLE;	/* nobody is armed before there is one to come to */
	return boot_write(in);
}

int inject_boot(struct injection *in)
{
	return boot_write(in);
}

int inject_patch(struct injection *in)
{
	if (in->want->tier == TIER_PATCH)
		code_patch(in);
	else
		code_look(in);
	if (in->want->tier != TIER_PATCH)
		in->boot.sealed = SEAL_BROKEN;
	in->boot.boards_used = in->libraries.used;
	row_fill(in);
	return boot_write(in);
}

bool inject_planned(pid_t pid, bool followers, struct maps *maps)
{
	struct injection in = { .r.pid = pid };
	bool planned = true, locks;
	struct plan *p;

	maps_free(maps);
	if (maps_read(pid, maps))
		return true;
	in.maps = *maps;
	if (followers)
		program_inspect(&in);
	locks = followers && !in.program.dynamic;
	for (size_t i = 0; i < in.maps.n; i++) {
		const struct map *m = &in.maps.map[i];
		int result = m->exec && m->inode ? patch_plan(pid, -1, m, &p) : -ENOENT;

		planned &= result != -EAGAIN;
		if (!result)
			plan_free(p);
		if (locks && m->exec && is_program(&in, m))
			planned &= hook_planned(pid, m, HOOK_STATIC);
	}
	return planned;
}

/* A filter has been written there, to be installed. */
static void block_clean(struct injection *in)
{
	static const uint8_t zero[2 * 4096];

	memory_write(in->r.memory, in->block, zero, sizeof(zero));
}

int inject(pid_t pid, const struct inject_want *want, struct layout *layout)
{
	const struct inside_image *im = inside_image();
	struct injection in = { .want = want };
	struct user_regs_struct regs;
	int result = remote_begin(&in.r, pid);

	if (result)
		return result;
	result = prepare(&in);
	regs = in.r.regs;
	regs.orig_rax = (uint64_t)-1;
	if (!result) {
		if (in.sum.vsyscall)
			block_clean(&in);
		regs.rip = in.base + im->start;
		regs.rsp = in.block + BLOCK_STACK;
		regs.rdi = in.block;
	} else {
		vdso_restore(&in);
	}
	remote_end(&in.r, &regs);
	maps_free(&in.maps);
	*layout = in.boot.layout;
	return result;
}
