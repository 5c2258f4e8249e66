/*
 * Which programs can be held: 64-bit x86 ELF files, and scripts that lead to
 * one.  The kernel has the last word on whether a file can be run at all; this
 * only knows what would be let through by it and not be held by us.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/outside/session/near.h"
#include "engine/outside/start/program.h"

#define SCRIPT_DEPTH	5	/* as the kernel */
#define LINE_BYTES	256	/* of a script's first line, too */

struct verdict_text {
	const char *reason, *hint;
};

static const struct verdict_text texts[] = {
	[PROGRAM_OK] = { "it can be held", "" },
	[PROGRAM_UNKNOWN] = { "it cannot be looked at", "check its path" },
	[PROGRAM_FAR] = { "its file system does not answer", "check its path" },
	[PROGRAM_DIRECTORY] = { "it is a directory", "give the program inside it" },
	[PROGRAM_FORBIDDEN] = { "permission denied",
				"make it executable (chmod +x), or ask its owner" },
	[PROGRAM_32BIT] = { "it is a 32-bit program",
			    "mve holds 64-bit programs; use a 64-bit build" },
	[PROGRAM_DAMAGED] = { "its ELF header is damaged", "build or install it again" },
	[PROGRAM_FOREIGN] = { "it is built for another machine", "use an x86-64 build" },
	[PROGRAM_PRIVILEGED] = { "it gains rights when started (setuid, setgid or capabilities)",
				 "run mve as root, or give a copy without these rights" },
	[PROGRAM_FORMAT] = { "it is neither a program nor a script with #!",
			     "start it by its interpreter: mve run -- sh FILE" },
	[PROGRAM_UNREADABLE] = { "it may be executed and not read, and so not held",
				 "make it readable (chmod +r), or run mve as root" },
};

const char *program_reason(enum program_verdict v)
{
	MUST(v < sizeof(texts) / sizeof(texts[0]) && texts[v].reason);
	return texts[v].reason;
}

const char *program_hint(enum program_verdict v)
{
	MUST(v < sizeof(texts) / sizeof(texts[0]) && texts[v].hint);
	return texts[v].hint;
}

#define HEAD_BYTES	2048	/* read at one go: nearly every program's headers lie in them */

/* A file's beginning. */
union file_head {
	Elf64_Ehdr elf;
	char text[HEAD_BYTES + 1];
};

static bool phdr_read(int fd, const union file_head *h, ssize_t n, int i, Elf64_Phdr *p)
{
	uint64_t at = h->elf.e_phoff + (uint64_t)i * sizeof(*p);

	MUST(n >= (ssize_t)sizeof(h->elf) && n <= HEAD_BYTES);	/* elf_look has asked */
	if (at > (uint64_t)n || sizeof(*p) > (uint64_t)n - at)
		return pread(fd, p, sizeof(*p), (off_t)at) == sizeof(*p);
	memcpy(p, h->text + at, sizeof(*p));
	return true;
}

static enum program_verdict elf_look(int fd, const struct stat *st, const union file_head *h,
				     ssize_t n)
{
	const Elf64_Ehdr *e = &h->elf;
	Elf64_Phdr p;

	if (n > EI_CLASS && e->e_ident[EI_CLASS] == ELFCLASS32)
		return PROGRAM_32BIT;
	if (n < (ssize_t)sizeof(*e) || e->e_ident[EI_CLASS] != ELFCLASS64)
		return PROGRAM_DAMAGED;
	if (e->e_machine != EM_X86_64)
		return PROGRAM_FOREIGN;
	if ((e->e_type != ET_EXEC && e->e_type != ET_DYN) || e->e_phentsize != sizeof(p) ||
	    !e->e_phnum)
		return PROGRAM_DAMAGED;
	for (int i = 0; i < e->e_phnum; i++) {
		if (!phdr_read(fd, h, n, i, &p))
			return PROGRAM_DAMAGED;
		if (p.p_type == PT_LOAD && p.p_filesz &&
		    (p.p_offset > (uint64_t)st->st_size ||
		     p.p_filesz > (uint64_t)st->st_size - p.p_offset))
			return PROGRAM_DAMAGED;
	}
	return PROGRAM_OK;
}

static int gains_rights(int fd, const struct stat *st)
{
	char caps[64];

	if (st->st_mode & S_ISUID && st->st_uid != geteuid())
		return 1;
	if ((st->st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) && st->st_gid != getegid())
		return 1;
	return fgetxattr(fd, "security.capability", caps, sizeof(caps)) > 0;
}

bool program_gains(const struct near_file *f)
{
	char path[32], caps[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", f->fd);
	return f->st.st_mode & (S_ISUID | S_ISGID) ||
	       getxattr(path, "security.capability", caps, sizeof(caps)) > 0;
}

/* The interpreter that a script's first line names; 0 when there is none. */
static int interpreter_of(const char *line, ssize_t n, char *path, size_t size)
{
	size_t at = 2, len;

	while (at < (size_t)n && (line[at] == ' ' || line[at] == '\t'))
		at++;
	len = strcspn(line + at, " \t\n");
	if (!len || len >= size)
		return 0;
	MUST(at + len <= HEAD_BYTES);	/* a 0 stands behind what was read */
	memcpy(path, line + at, len);
	path[len] = 0;
	return 1;
}

static enum program_verdict file_look(int fd, const struct stat *st, int privileged, char *next,
				     size_t size)
{
	union file_head head = { .text = "" };
	ssize_t n;

	n = pread(fd, head.text, sizeof(head.text) - 1, 0);
	if (n >= 2 && !memcmp(head.text, "#!", 2) &&
	    interpreter_of(head.text, n < LINE_BYTES ? n : LINE_BYTES, next, size))
		return PROGRAM_OK;
	if (n < SELFMAG || memcmp(head.text, ELFMAG, SELFMAG))
		return PROGRAM_FORMAT;
	if (!privileged && gains_rights(fd, st))
		return PROGRAM_PRIVILEGED;
	return elf_look(fd, st, &head, n);
}

static enum program_verdict named_look(const struct near_file *f, int privileged, char *next,
				      size_t size)
{
	bool runs = !faccessat(f->fd, "", X_OK, AT_EACCESS | AT_EMPTY_PATH);
	enum program_verdict v;
	int fd;

	if (S_ISDIR(f->st.st_mode))
		return PROGRAM_DIRECTORY;
	if (!S_ISREG(f->st.st_mode))
		return PROGRAM_FORBIDDEN;
	fd = near_read(f->fd);
	if (fd == -EACCES)
		return !runs ? PROGRAM_FORBIDDEN :
		       privileged ? PROGRAM_UNKNOWN : PROGRAM_UNREADABLE;
	if (fd < 0)
		return PROGRAM_UNKNOWN;
	v = file_look(fd, &f->st, privileged, next, size);
	close(fd);
	return runs ? v : PROGRAM_FORBIDDEN;
}

/* One file of the chain; *next is the interpreter that it asks for, or "". */
static enum program_verdict step_look(const char *path, int privileged, char *next, size_t size)
{
	enum program_verdict v;
	struct near_file f;
	int result = near_open(path, &f);

	next[0] = 0;
	if (result)
		return result == -EAGAIN ? PROGRAM_FAR :
		       result == -EACCES ? PROGRAM_FORBIDDEN : PROGRAM_UNKNOWN;
	v = named_look(&f, privileged, next, size);
	near_close(&f);
	return v;
}

int program_is_shells(const char *path)
{
	static const char *const shells[] = { "sh", "dash", "bash", "ksh", "zsh" };
	char this[512], next[512] = "";
	const char *base;

	for (int depth = 0; depth < SCRIPT_DEPTH; depth++) {
		step_look(path, 1, next, sizeof(next));
		if (!next[0])
			break;
		memcpy(this, next, sizeof(this));
		path = this;
	}
	base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++)
		if (!strcmp(base, shells[i]))
			return 1;
	return 0;
}

enum program_verdict program_look(const char *path, int privileged)
{
	enum program_verdict v = PROGRAM_OK;
	char this[512], next[512] = "";

	for (int depth = 0; depth < SCRIPT_DEPTH && v == PROGRAM_OK; depth++) {
		v = step_look(path, privileged, next, sizeof(next));
		if (!next[0])
			break;
		memcpy(this, next, sizeof(this));
		path = this;
	}
	return v;
}

/* --- the loader it names -------------------------------------------------------------- */

static bool head_read(int fd, const uint8_t *head, ssize_t n, uint64_t at, void *to, size_t len)
{
	if (n > 0 && at <= (uint64_t)n && len <= (uint64_t)n - at) {
		memcpy(to, head + at, len);
		return true;
	}
	return pread(fd, to, len, (off_t)at) == (ssize_t)len;
}

bool program_interpreter(int fd, char *name, size_t size)
{
	uint8_t head[HEAD_BYTES];
	ssize_t n = pread(fd, head, sizeof(head), 0);
	bool found = false;
	Elf64_Ehdr e;
	Elf64_Phdr p = { 0 };

	MUST(size > 1);
	memset(name, 0, size);
	if (!head_read(fd, head, n, 0, &e, sizeof(e)))
		return false;
	for (int i = 0; i < e.e_phnum && !found; i++)
		found = head_read(fd, head, n, e.e_phoff + (uint64_t)i * sizeof(p), &p,
				  sizeof(p)) &&
			p.p_type == PT_INTERP;
	if (found && !head_read(fd, head, n, p.p_offset, name,
				p.p_filesz < size ? p.p_filesz : size - 1))
		name[0] = 0;
	return found;
}
