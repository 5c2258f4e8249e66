/*
 * mve log DIR pack: the files that a replay needs are put into the recording.
 *
 * Which they are nobody has told: a loader opens libraries by itself.  So the recording is
 * replayed, here, where they are; what its processes map is what is needed (--used), and that they
 * are the right ones is known from its being equal, and from the program's build id.  To that come
 * programs that were begun, what they name as their interpreters, files that calls have mapped, and
 * the symbolic links on the way.
 *
 * What was packed before stays, and is taken where this machine has none, or another: we look from
 * where its files stand in their places, as the replay does.
 */
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/abi/table.h"
#include "engine/core/must.h"
#include "engine/mve/log/log.h"
#include "engine/mve/show.h"
#include "engine/outside/kernel/folder.h"
#include "engine/outside/log/head.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/pack/packed.h"
#include "engine/outside/report/view.h"

#define USED_NAME	"used"		/* while it is made */
#define USED_BYTES	(64u << 20)
#define LINKS_MOST	40		/* on the way to a file, as the kernel has it */
#define NUMBERS_MOST	4096		/* of descriptors whose files we know */
#define HEAD_BYTES	4096		/* of a file: what it names as its interpreter */

/* Who has opened which file by this number, the last of each process. */
struct opened {
	struct opened *next;
	int32_t pid;
	char *path;
};

struct pack {
	const struct log_want *want;
	int recording, files;
	json_t *list, *seen;	/* what is to be written; paths, as keys */
	uint64_t bytes;
	unsigned missing;
	struct opened *opened[NUMBERS_MOST];
	char why[PATH_MAX + 100];
};

static void path_add(struct pack *p, const char *path);

/* --- one file -------------------------------------------------------------------------- */

static bool is_seen(struct pack *p, const char *path)
{
	bool was = json_object_get(p->seen, path);

	if (!was && json_object_set_new(p->seen, path, json_true())) {
		snprintf(p->why, sizeof(p->why), "a name that is no UTF-8: %s", path);
		return true;
	}
	return was;
}

/* Named by what it holds. */
static int content_put(struct pack *p, int fd, const char *sum)
{
	int to = openat(p->files, "new", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	int result = to < 0 ? -errno : 0;
	static uint8_t bytes[1 << 16];
	char again[SHA256_TEXT] = "";
	off_t at = 0;
	ssize_t n;

	while (!result && (n = pread(fd, bytes, sizeof(bytes), at)) > 0) {
		result = fd_write(to, &(struct folder_part){ bytes, (size_t)n });
		at += n;
	}
	if (!result)
		result = packed_sum(to, again);
	if (!result && strcmp(again, sum))
		result = -EBUSY;
	if (!result && renameat(p->files, "new", p->files, sum))
		result = -errno;
	if (to >= 0)
		close(to);
	return result;
}

static void interpreter_add(struct pack *p, int fd)
{
	char head[HEAD_BYTES + 1] = "", path[PATH_MAX] = "";
	ssize_t n = pread(fd, head, HEAD_BYTES, 0);
	Elf64_Ehdr e;
	Elf64_Phdr ph;

	if (n > 2 && !memcmp(head, "#!", 2) && sscanf(head + 2, " %4000s", path) == 1) {
		path_add(p, path);
		return;
	}
	memcpy(&e, head, sizeof(e));
	if (n < (ssize_t)sizeof(e) || memcmp(e.e_ident, ELFMAG, SELFMAG))
		return;
	for (unsigned i = 0; i < e.e_phnum; i++)
		if (pread(fd, &ph, sizeof(ph), (off_t)(e.e_phoff + i * sizeof(ph))) ==
		    sizeof(ph) && ph.p_type == PT_INTERP && ph.p_filesz < sizeof(path) &&
		    pread(fd, path, ph.p_filesz, (off_t)ph.p_offset) > 0 && path[0] == '/')
			path_add(p, path);
}

static void file_add(struct pack *p, const char *path, int fd, const struct stat *is)
{
	char sum[SHA256_TEXT];
	int result = packed_sum(fd, sum);

	if (!result && !packed_has(p->files, sum))
		result = content_put(p, fd, sum);
	if (result) {
		snprintf(p->why, sizeof(p->why), "%s: %s", path, strerror(-result));
		return;
	}
	p->bytes += (uint64_t)is->st_size;
	json_array_append_new(p->list, json_pack("{s:s, s:s, s:i, s:I}", "path", path, "sha256",
						 sum, "mode", is->st_mode & 0777, "size",
						 (json_int_t)is->st_size));
	interpreter_add(p, fd);
}

/* --- the way to it --------------------------------------------------------------------- */

static void real_add(struct pack *p, const char *path)
{
	struct stat is;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);

	if (fd >= 0 && !fstat(fd, &is) && S_ISREG(is.st_mode)) {
		if (!is_seen(p, path))
			file_add(p, path, fd, &is);
	} else if (fd < 0) {
		p->missing++;
	}
	if (fd >= 0)
		close(fd);
}

/* What is behind a link, in place of it: from its folder on, or from the root. */
static void link_follow(char path[PATH_MAX], size_t end, const char *link)
{
	char rest[PATH_MAX];
	size_t from = end;

	snprintf(rest, sizeof(rest), "%s", path + end);
	while (from && path[from - 1] != '/')
		from--;
	snprintf(path + (link[0] == '/' ? 0 : from), PATH_MAX - (link[0] == '/' ? 0 : from),
		 "%s%s", link, rest);
}

/* The first link on the way, with what it leads to: true, and the path is another. */
static bool link_take(struct pack *p, char path[PATH_MAX])
{
	char part[PATH_MAX], link[PATH_MAX];

	for (size_t end = 1; path[end - 1]; end++) {
		ssize_t n;

		if (path[end] && path[end] != '/')
			continue;
		snprintf(part, sizeof(part), "%.*s", (int)end, path);
		n = readlink(part, link, sizeof(link) - 1);
		if (n <= 0) {
			if (!path[end])
				return false;
			continue;
		}
		link[n] = 0;
		if (!is_seen(p, part))
			json_array_append_new(p->list, json_pack("{s:s, s:s}", "path", part,
								 "link", link));
		link_follow(path, end, link);
		return true;
	}
	return false;
}

static bool is_of_kernel(const char *path)
{
	static const char *const first[] = { "/proc/", "/sys/", "/dev/", "/memfd:", "/SYSV",
					     "/anon_hugepage", "/[" };

	for (size_t i = 0; i < sizeof(first) / sizeof(first[0]); i++)
		if (!strncmp(path, first[i], strlen(first[i])))
			return true;
	return false;
}

/* Its links and what it is; a relative one is of the folder in which the program began. */
static void path_add(struct pack *p, const char *path)
{
	char at[PATH_MAX];
	int n = path[0] == '/' ? snprintf(at, sizeof(at), "%s", path) :
		snprintf(at, sizeof(at), "%s/%s", p->want->program.folder, path);

	if (n >= (int)sizeof(at) || is_of_kernel(at))
		return;
	for (n = 0; n < LINKS_MOST && link_take(p, at); n++)
		;
	if (strstr(at, "/../") || strstr(at, "/./")) {
		char *real = realpath(at, NULL);

		snprintf(at, sizeof(at), "%s", real ? real : "");
		free(real);
	}
	if (at[0])
		real_add(p, at);
}

/* Libraries are opened by names that lead to them, in their own folders. */
static void names_add(struct pack *p, const char *folder)
{
	DIR *dir = is_seen(p, folder) ? NULL : opendir(folder);
	char path[PATH_MAX], *real;

	for (struct dirent *d; dir && (d = readdir(dir));) {
		if (d->d_type != DT_LNK || !strstr(d->d_name, ".so") ||
		    snprintf(path, sizeof(path), "%s/%s", folder, d->d_name) >= (int)sizeof(path))
			continue;
		real = realpath(path, NULL);
		if (real && json_object_get(p->seen, real))
			path_add(p, path);
		free(real);
	}
	if (dir)
		closedir(dir);
}

static void libraries_add(struct pack *p)
{
	size_t n = json_array_size(p->list);
	char folder[PATH_MAX];

	for (size_t i = 0; i < n; i++) {
		const char *path = show_text(json_array_get(p->list, i), "path");
		const char *name = strrchr(path, '/');

		snprintf(folder, sizeof(folder), "%.*s", (int)(name - path), path);
		if (strstr(name, ".so"))
			names_add(p, folder);
	}
}

/* --- what calls say --------------------------------------------------------------------- */

static struct opened *opened_at(struct pack *p, uint64_t fd, int32_t pid)
{
	struct opened *o = fd < NUMBERS_MOST ? p->opened[fd] : NULL;

	while (o && o->pid != pid)
		o = o->next;
	return o;
}

static void open_see(struct pack *p, uint64_t fd, int32_t pid, const char *path)
{
	struct opened *o = opened_at(p, fd, pid);

	if (fd >= NUMBERS_MOST)
		return;
	if (!o) {
		o = calloc(1, sizeof(*o));
		MUST(o);
		*o = (struct opened){ .next = p->opened[fd], .pid = pid };
		p->opened[fd] = o;
	}
	free(o->path);
	o->path = strdup(path);
}

/* A process that has not opened it itself has it from another. */
static void map_see(struct pack *p, uint64_t fd, int32_t pid)
{
	struct opened *o = opened_at(p, fd, pid);

	if (!o && fd < NUMBERS_MOST)
		o = p->opened[fd];
	if (o)
		path_add(p, o->path);
}

static bool path_of(const struct view *v, char path[PATH_MAX])
{
	for (unsigned i = 0; i < v->parts; i++) {
		const struct part *part = &v->part[i];
		size_t n = part->have < PATH_MAX - 1 ? part->have : PATH_MAX - 1;

		if (v->row->args[part->arg].kind != KIND_PATH)
			continue;
		memcpy(path, part->bytes, n);
		path[n] = 0;
		return path[0];
	}
	return false;
}

static void event_see(void *ctx, const struct told *t)
{
	struct pack *p = ctx;
	char path[PATH_MAX];
	struct view v;

	if (t->event->kind == EVENT_FILE)
		map_see(p, t->event->arg[0], t->pid);
	if (t->event->kind != EVENT_CALL)
		return;
	view_event(&v, t->event, t->payload, t->len, NULL);
	if (!v.row || v.result < 0)
		return;
	if (v.row->result == KIND_FD && path_of(&v, path))
		open_see(p, (uint64_t)v.result, t->pid, path);
	else if (v.row->class == CLASS_LIFE && path_of(&v, path))
		path_add(p, path);
}

static void frame_pass(void *ctx, const struct log_frame *frame)
{
	(void)ctx;
	(void)frame;
}

/* --- all of it ---------------------------------------------------------------------------- */

/* It is replayed; its exit code.  What it says is for the user only if it is not equal. */
static int replay_run(const char *path, const char *used)
{
	int status = 0, null;
	pid_t pid = fork();

	if (!pid) {
		null = open("/dev/null", O_RDWR);
		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
		execl("/proc/self/exe", "mve", "replay", "--partial", "--used", used, path, NULL);
		_exit(EXIT_SYSTEM);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return pid < 0 || !WIFEXITED(status) ? EXIT_SYSTEM : WEXITSTATUS(status);
}

static int refuse(const struct pack *p, const char *why)
{
	say_error("what was packed before is as it was", "%s: not packed: %s", p->want->path, why);
	return EXIT_NO;
}

/* The replay may be equal all the same. */
static int build_check(const struct pack *p)
{
	const struct program *program = &p->want->program;
	char why[PATH_MAX + 100];

	if (!program_is_other(program))
		return 0;
	snprintf(why, sizeof(why), "%s: another build than the recorded one lies there",
		 program->path);
	return refuse(p, why);
}

/* What is packed stands in its places, for us and for the replay. */
static int packed_take(struct pack *p)
{
	int code = packed_enter(p->want->path, p->want->program.folder);
	json_t *index, *row;
	bool damaged;
	size_t i;

	if (code) {
		refuse(p, "what it has cannot be taken");
		return code;
	}
	index = packed_index(p->recording, &damaged);
	json_array_foreach(json_object_get(index, "files"), i, row)
		path_add(p, show_text(row, "path"));
	json_decref(index);
	return 0;
}

static int used_take(struct pack *p)
{
	char used[PATH_MAX + 8], *text;
	size_t len = 0;
	int code;

	folder_path(p->recording, used, PATH_MAX);
	strcat(used, "/" USED_NAME);
	code = replay_run(p->want->path, used);
	text = code ? NULL : folder_read(p->recording, USED_NAME, USED_BYTES, &len);
	unlinkat(p->recording, USED_NAME, 0);
	if (!text) {
		say_error("what it needs is known from a replay that is equal",
			  "%s: not packed: it cannot be replayed here", p->want->path);
		return code ? code : EXIT_SYSTEM;
	}
	for (char *at = text; at < text + len; at += strlen(at) + 1)
		path_add(p, at);
	free(text);
	return 0;
}

static int index_write(struct pack *p)
{
	json_t *j = json_pack("{s:i, s:O}", "version", PACKED_VERSION, "files", p->list);
	char *text = j ? json_dumps(j, JSON_INDENT(1)) : NULL;
	struct folder_part part = { text, text ? strlen(text) : 0 };
	int result = text ? folder_write(p->recording, PACKED_INDEX, &part, 1) : -ENOMEM;

	free(text);
	json_decref(j);
	return result;
}

static int pack_open(struct pack *p)
{
	p->recording = open(p->want->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	p->files = p->recording < 0 ? -errno :
		   folder_open(p->recording, PACKED_FOLDER, FOLDER_MAKE | FOLDER_CLOSED);
	if (p->files >= 0)
		return 0;
	say_error("the recording's folder must be yours, and on a disk with room",
		  "%s: not packed: %s", p->want->path, folder_why(-p->files));
	return EXIT_SYSTEM;
}

static int all_add(struct pack *p, struct frames *f)
{
	static const char *const always[] = { "/etc/ld.so.cache", "/lib", "/lib64", "/bin", "/sbin",
					      "/usr/lib64" };
	int code = packed_take(p), result;

	if (!code)
		code = build_check(p);
	if (!code)
		code = used_take(p);
	if (code)
		return code;
	path_add(p, p->want->program.path);
	events_each(f, event_see, frame_pass, p);
	libraries_add(p);
	for (size_t i = 0; i < sizeof(always) / sizeof(always[0]); i++)
		path_add(p, always[i]);
	result = p->why[0] ? 0 : index_write(p);
	if (result)
		snprintf(p->why, sizeof(p->why), "%s", strerror(-result));
	if (!p->why[0])
		return 0;
	refuse(p, p->why);
	return EXIT_SYSTEM;
}

int log_pack(const struct log_want *w, struct frames *f)
{
	static struct pack p;
	int code;

	p.want = w;
	p.list = json_array();
	p.seen = json_object();
	MUST(p.list && p.seen);
	code = pack_open(&p);
	if (!code)
		code = all_add(&p, f);
	if (code)
		return code;
	if (w->json)
		return show_json(json_pack("{s:o, s:I, s:i}", "files", p.list, "bytes",
					   (json_int_t)p.bytes, "missing", (int)p.missing));
	printf("packed %zu files and links, %lu bytes\n", json_array_size(p.list),
	       (unsigned long)p.bytes);
	return EXIT_OK;
}
