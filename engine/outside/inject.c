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
#include <linux/filter.h>
#include <linux/seccomp.h>
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
#include "engine/outside/auxv.h"
#include "engine/outside/hook.h"
#include "engine/outside/image.h"
#include "engine/outside/inject.h"
#include "engine/outside/maps.h"
#include "engine/outside/monitor.h"
#include "engine/outside/patch.h"
#include "engine/outside/remote.h"
#include "engine/outside/runtime.h"
#include "engine/outside/say.h"
#include "engine/outside/vdso.h"

#define BLOCK_BYTES	0x10000ull	/* BLOCK_SIZE of the inside */
#define BLOCK_STACK	0x7000ull	/* BLOCK_STACK_TOP */
#define ANON		(MAP_PRIVATE | MAP_ANONYMOUS)

struct injection {
	struct remote r;
	const struct inject_want *want;
	struct maps maps;
	uint64_t base, boards, block, area, streams;
	struct board_room libraries;
	struct boot boot;
	struct patch_sum sum;
	struct layout_moves moved;
	uint64_t auxv;
	uint64_t stack_page;	/* that `stack` has a copy of; 0: none */
	uint8_t stack[4096];
	struct program_file {	/* what is executed */
		uint64_t inode;
		char interpreter[256];
		bool dynamic;	/* it names one */
	} program;
};

static bool failed(long result)
{
	return result < 0 && result > -4096;
}

/* --- area and streams, by descriptor ---------------------------------------- */

/* The area, the brief; with followers also the monitor's page, and each section. */
#define FDS		(3 + VERSIONS)

static int fds_send(int socket, const int *fd, unsigned n)
{
	char control[CMSG_SPACE(FDS * sizeof(int))] = { 0 }, byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
			    .msg_controllen = CMSG_SPACE(n * sizeof(int)) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(n * sizeof(int));
	memcpy(CMSG_DATA(c), fd, n * sizeof(int));
	return sendmsg(socket, &m, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* Sends our fds to the tracee's socket `theirs` by way of a copy of it. */
static int fds_send_to(pid_t pid, int theirs, const int *fd, unsigned n)
{
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	int ours = pidfd < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, pidfd, theirs, 0);
	int result = ours < 0 ? -errno : fds_send(ours, fd, n);

	if (pidfd >= 0)
		close(pidfd);
	if (ours >= 0)
		close(ours);
	return result;
}

/* What recvmsg needs in the tracee, at a scratch address. */
struct receive {
	struct msghdr m;
	struct iovec iov;
	char control[CMSG_SPACE(FDS * sizeof(int))];
	char byte[8];
};

static int fds_receive(struct injection *in, int socket, int *fd, unsigned n)
{
	uint64_t at = in->block;
	struct receive rc = { 0 };
	long result;

	rc.iov.iov_base = (void *)(at + offsetof(struct receive, byte));
	rc.iov.iov_len = 1;
	rc.m.msg_iov = (void *)(at + offsetof(struct receive, iov));
	rc.m.msg_iovlen = 1;
	rc.m.msg_control = (void *)(at + offsetof(struct receive, control));
	rc.m.msg_controllen = CMSG_SPACE(n * sizeof(int));
	result = memory_write(in->r.memory, at, &rc, sizeof(rc));
	if (!result)
		result = REMOTE(&in->r, SYS_recvmsg, (uint64_t)socket, at, 0);
	if (failed(result))
		return (int)result;
	memory_read(in->r.memory, at, &rc, sizeof(rc));
	if (rc.m.msg_controllen < CMSG_LEN(n * sizeof(int)))
		return -EMFILE;
	memcpy(fd, CMSG_DATA((struct cmsghdr *)rc.control), n * sizeof(int));
	return 0;
}

static int fd_map(struct injection *in, int fd, uint64_t at, uint64_t len, int prot,
		  uint64_t *out)
{
	uint64_t flags = MAP_SHARED | MAP_NORESERVE | (at ? MAP_FIXED : 0);
	long result = REMOTE(&in->r, SYS_mmap, at, len, (uint64_t)prot, flags, (uint64_t)fd, 0);

	*out = (uint64_t)result;
	return failed(result) ? (int)result : 0;
}

/* The monitor's page, and over what lies behind it the sections. */
static int streams_map(struct injection *in, const int *fd)
{
	const struct inject_want *w = in->want;
	uint64_t len = section_offset(w->chunks, w->versions), size = section_size(w->chunks), at;
	int result = fd_map(in, fd[0], 0, len, PROT_READ, &in->streams);

	for (uint32_t v = 0; v < w->versions && !result; v++)
		result = fd_map(in, fd[1 + v], in->streams + section_offset(w->chunks, v), size,
				v == w->version ? PROT_READ | PROT_WRITE : PROT_READ, &at);
	/* A core file is about the program. */
	REMOTE(&in->r, SYS_madvise, in->streams, len, MADV_DONTDUMP);
	return result;
}

static unsigned fds_of(const struct inject_want *w, int *fd)
{
	fd[0] = w->area_fd;
	fd[1] = w->brief_fd;
	if (!w->chunks)
		return 2;
	fd[2] = w->conduct_fd;
	memcpy(fd + 3, w->section_fd, w->versions * sizeof(*fd));
	return 3 + w->versions;
}

static int shared_map_by(struct injection *in, const int pair[2])
{
	int ours[FDS], fd[FDS];
	unsigned n = fds_of(in->want, ours);
	int result = fds_send_to(in->r.pid, pair[1], ours, n);

	if (!result)
		result = fds_receive(in, pair[0], fd, n);
	if (result)
		return result;
	result = fd_map(in, fd[0], 0, sizeof(struct area), PROT_READ | PROT_WRITE, &in->area);
	if (!result)
		result = fd_map(in, fd[1], 0, sizeof(struct brief), PROT_READ, &in->boot.brief);
	if (!result && in->want->chunks)
		result = streams_map(in, fd + 2);
	for (unsigned i = 0; i < n; i++)
		REMOTE(&in->r, SYS_close, (uint64_t)fd[i]);
	return result;
}

/* A server may live under a low limit of descriptors: lift it meanwhile. */
static void files_lift(pid_t pid, struct rlimit *was)
{
	struct rlimit more;

	if (prlimit(pid, RLIMIT_NOFILE, NULL, was) < 0)
		return;
	more = *was;
	more.rlim_cur = more.rlim_max;
	prlimit(pid, RLIMIT_NOFILE, &more, NULL);
}

static int shared_map(struct injection *in)
{
	struct rlimit was = { 0, 0 };
	int pair[2], result;

	files_lift(in->r.pid, &was);
	result = (int)REMOTE(&in->r, SYS_socketpair, AF_UNIX, SOCK_DGRAM, 0, in->block);
	if (!result) {
		memory_read(in->r.memory, in->block, pair, sizeof(pair));
		result = shared_map_by(in, pair);
		REMOTE(&in->r, SYS_close, (uint64_t)pair[0]);
		REMOTE(&in->r, SYS_close, (uint64_t)pair[1]);
	}
	prlimit(in->r.pid, RLIMIT_NOFILE, &was, NULL);
	return result;
}

/* --- the image ------------------------------------------------------------- */

static int image_map(struct injection *in)
{
	const struct inside_image *im = inside_image();
	uint64_t len = im->memory_len + LIBRARY_BOARDS + BLOCK_BYTES;
	long at = REMOTE(&in->r, SYS_mmap, 0, len, PROT_READ | PROT_WRITE, ANON, (uint64_t)-1, 0);
	long result;

	if (failed(at))
		return (int)at;
	in->base = (uint64_t)at;
	in->boards = in->base + im->memory_len;
	in->block = in->boards + LIBRARY_BOARDS;
	result = memory_write(in->r.memory, in->base, im->bytes, im->file_len);
	if (!result)
		result = REMOTE(&in->r, SYS_mprotect, in->base, im->data,
				PROT_READ | PROT_EXEC);
	if (!result)
		result = REMOTE(&in->r, SYS_mprotect, in->boards, LIBRARY_BOARDS,
				PROT_READ | PROT_EXEC);
	return (int)result;
}

static int boot_write(struct injection *in)
{
	const struct inside_image *im = inside_image();
	struct boot *b = &in->boot;

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
	b->vpid = in->want->vpid;
	return memory_write(in->r.memory, in->base + im->boot, b, sizeof(*b));
}

/* --- the auxiliary vector ----------------------------------------------------- */

/* A word of the fresh stack, which is read by the page. */
static int stack_word(struct injection *in, uint64_t at, uint64_t *word)
{
	uint64_t page = at & ~0xfffull;
	int result = 0;

	if (page != in->stack_page)
		result = memory_read(in->r.memory, page, in->stack, sizeof(in->stack));
	in->stack_page = result ? 0 : page;
	if (!result)
		memcpy(word, in->stack + (at - page), sizeof(*word));
	return result;
}

/* The address of the auxiliary vector on a fresh stack, whose pointer is aligned. */
static uint64_t auxv_find(struct injection *in)
{
	uint64_t at = in->r.regs.rsp, word = 0;

	if (stack_word(in, at, &word))
		return 0;
	at += 8 * (word + 2);		/* argc, argv and its NULL */
	do {
		if (stack_word(in, at, &word))
			return 0;
		at += 8;
	} while (word);
	return at;
}

static void vdso_replace(struct injection *in, uint64_t at, uint64_t vdso)
{
	vdso_functions(in->r.memory, vdso, in->boot.vdso);
	if (in->boot.vdso[VDSO_CLOCK_GETTIME])
		memory_write(in->r.memory, at, &in->base, 8);
}

/* Our vDSO; and with followers, random bytes that twins have in common. */
static void auxv_change(struct injection *in)
{
	uint64_t at = in->auxv, pair[2];

	for (; at && !stack_word(in, at, &pair[0]) && !stack_word(in, at + 8, &pair[1]) &&
	       pair[0] != AT_NULL; at += 16) {
		if (pair[0] == AT_SYSINFO_EHDR)
			vdso_replace(in, at + 8, pair[1]);
		else if (pair[0] == AT_RANDOM && in->want->chunks)
			memory_write(in->r.memory, pair[1], in->want->random,
				     sizeof(in->want->random));
	}
}

/* --- the code that is there already ------------------------------------------ */

static int boards_near(struct injection *in, const struct map *m, uint64_t need,
		       struct board_room *room)
{
	uint64_t hole = need ? maps_hole_near(&in->maps, m->start, m->end, need) : 0;
	long at;

	if (!hole)
		return -ENOMEM;
	at = REMOTE(&in->r, SYS_mmap, hole, need, PROT_READ | PROT_EXEC,
		    ANON | MAP_FIXED_NOREPLACE, (uint64_t)-1, 0);
	if (failed(at))
		return (int)at;
	*room = (struct board_room){ (uint64_t)at, need, 0 };
	return 0;
}

static bool in_reach(uint64_t boards, const struct map *m)
{
	uint64_t low = m->start < boards ? m->start : boards;
	uint64_t high = m->end > boards + LIBRARY_BOARDS ? m->end : boards + LIBRARY_BOARDS;

	return high - low < 0x7ff00000;
}

/* The interpreter that the program names; false when it has none. */
static bool interpreter_of(struct injection *in, char *name, size_t size)
{
	char exe[64];
	Elf64_Ehdr e;
	Elf64_Phdr p = { 0 };
	bool found = false;
	int fd;

	snprintf(exe, sizeof(exe), "/proc/%d/exe", in->r.pid);
	fd = open(exe, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	if (pread(fd, &e, sizeof(e), 0) == sizeof(e))
		for (int i = 0; i < e.e_phnum && !found; i++)
			found = pread(fd, &p, sizeof(p), (off_t)(e.e_phoff + (uint64_t)i * sizeof(p))) ==
					sizeof(p) &&
				p.p_type == PT_INTERP;
	memset(name, 0, size);
	if (found && pread(fd, name, p.p_filesz < size ? p.p_filesz : size - 1,
			   (off_t)p.p_offset) < 0)
		name[0] = 0;
	close(fd);
	return found;
}

/* Looked at once: the file cannot change while its process stands still. */
static void program_inspect(struct injection *in)
{
	struct program_file *p = &in->program;
	char exe[64];
	struct stat st;

	snprintf(exe, sizeof(exe), "/proc/%d/exe", in->r.pid);
	p->inode = stat(exe, &st) ? 0 : st.st_ino;
	p->dynamic = interpreter_of(in, p->interpreter, sizeof(p->interpreter));
}

static bool is_program(const struct injection *in, const struct map *m)
{
	return m->inode && m->inode == in->program.inode;
}

/*
 * A dynamic program's own calls are marked, not patched, until they prove hot:
 * only its own code is what it might copy.  Go's does not, and it has threads
 * before a call could be hot.
 */
static void map_patch(struct injection *in, const struct map *m, bool dynamic)
{
	struct board_room *near_libraries = &in->libraries;
	struct board_room own = { 0 };

	if (!in_reach(in->boards, m))
		boards_near(in, m, patch_room_needed(in->r.pid, in->r.memory, m),
			    &own);	/* without room: marks only */
	if (dynamic && is_program(in, m) && !patch_is_go(in->r.pid, in->r.memory, m)) {
		in->boot.near_program = own;
		patch_mark(in->r.pid, in->r.memory, m, &in->sum);
		return;
	}
	patch_map(in->r.pid, in->r.memory, m, own.len ? &own : near_libraries, &in->sum);
}

static const char *base_name(const char *path)
{
	return strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
}

static bool is_loader(const char *path)
{
	return !strncmp(base_name(path), "ld-linux", 8);
}

/*
 * The dynamic loader finds another version's libraries in other places: its
 * calls are nobody's twin.  musl's is its libc, whose calls are the program's.
 * It may be the program itself, told to load another one.
 */
static void loader_note(struct injection *in)
{
	const char *name = in->program.interpreter;
	bool dynamic = in->program.dynamic;

	for (size_t i = 0; i < in->maps.n; i++) {
		const struct map *m = &in->maps.map[i];
		bool loader = dynamic ? is_loader(name) && !is_program(in, m) : is_loader(m->path);

		if (m->exec && m->inode && loader && in->boot.locals < BOOT_LOCALS)
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
		bool ours = m->start >= in->base && m->start < in->block + BLOCK_BYTES;

		if (!m->exec || ours || !strcmp(m->path, "[vsyscall]"))
			continue;
		map_patch(in, m, dynamic);
	}
	in->boot.sealed = !in->sum.unclean && !in->sum.vsyscall && !in->sum.guards;
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
			hook_map(in->r.pid, in->r.memory, m, file, &in->libraries);
		else if (!boards_near(in, m, HOOKS_ROOM, &own))
			hook_map(in->r.pid, in->r.memory, m, file, &own);
	}
}

/* The functions of the program with which a request begins. */
static void seams_hook(struct injection *in)
{
	const char *const *name = in->want->seam;
	uint64_t need = 0;

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
		for (name = in->want->seam; *name; name++)
			hook_function(in->r.pid, in->r.memory, m, *name, room);
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
			b->part[b->parts++] = (struct code_part){ range[k].from, range[k].to, unwind,
								  PART_RUNTIME, 0 };
			b->runtimes++;
		}
	}
}

/* In the trap tier nothing is changed; only the old page needs to be known of. */
static void code_look(struct injection *in)
{
	for (size_t i = 0; i < in->maps.n; i++)
		if (in->maps.map[i].exec && in->maps.map[i].inode)
			in->sum.vsyscall |= patch_calls_vsyscall(in->r.pid, in->r.memory,
								 &in->maps.map[i]);
}

/* --- the vsyscall page -------------------------------------------------------- */

/*
 * Only a seccomp filter can catch calls through the vsyscall page, and a filter
 * costs every call: it is installed where a file holds an address of that page.
 */
static void vsyscall_catch(struct injection *in)
{
	const struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_gettimeofday, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_time, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getcpu, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, instruction_pointer) + 4),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0xffffffff, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	uint64_t at = in->block, prog[2] = { sizeof(code) / sizeof(code[0]), at + 16 };

	if (memory_write(in->r.memory, at, prog, sizeof(prog)) ||
	    memory_write(in->r.memory, at + 16, code, sizeof(code)))
		return;
	if (REMOTE(&in->r, SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, at) == 0)
		return;
	REMOTE(&in->r, SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	REMOTE(&in->r, SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, at);
}

/* --- all of it ---------------------------------------------------------------- */

static void row_fill(const struct injection *in)
{
	const struct inside_image *im = inside_image();
	struct image *row = in->want->row;
	char name[64];
	ssize_t n;

	*row = (struct image){ .pid = in->r.pid, .sites_patched = in->sum.patched,
			       .sites_trapped = in->sum.trapped,
			       .sealed = in->boot.sealed, .inside = in->base,
			       .inside_len = im->memory_len };
	snprintf(name, sizeof(name), "/proc/%d/exe", in->r.pid);
	n = readlink(name, row->exe, sizeof(row->exe) - 1);
	row->exe[n < 0 ? 0 : n] = 0;
}

/* The leader's is told, a follower's is made like it. */
static int layout_take(struct injection *in)
{
	int result = in->want->chunks ? maps_read(in->r.pid, &in->maps) : 0;

	if (result || !in->want->chunks)
		return result;
	if (in->want->role == ROLE_FOLLOWER)
		layout_settle(&in->r, &in->maps, in->want->wish, &in->moved);
	else
		layout_read(&in->r, &in->maps, &in->boot.layout);
	maps_free(&in->maps);
	return 0;
}

static int prepare(struct injection *in)
{
	int result = layout_take(in);

	if (!result)
		result = image_map(in);

	if (!result)
		result = shared_map(in);
	if (!result)
		result = maps_read(in->r.pid, &in->maps);
	if (result)
		return result;
	in->auxv = auxv_find(in);
	auxv_change(in);
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
	in->boot.boards_used = in->libraries.used;
	if (in->sum.vsyscall)
		vsyscall_catch(in);
	auxv_publish(&in->r, in->auxv, &in->moved);
	row_fill(in);
	return boot_write(in);
}

static void block_clean(struct injection *in)
{
	static const uint8_t zero[4096];

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
		block_clean(&in);
		regs.rip = in.base + im->start;
		regs.rsp = in.block + BLOCK_STACK;
		regs.rdi = in.block;
	}
	remote_end(&in.r, &regs);
	maps_free(&in.maps);
	*layout = in.boot.layout;
	return result;
}
