/*
 * Sanitizers' runtimes, by the symbols of their files.
 *
 * gcc's are libraries; clang's, and gcc's by request, are linked into the program.
 * There the runtime is one stretch of code or a few, since its objects come from one
 * archive: all functions with its names, or from its source files, and what lies
 * between them and is nobody else's.
 *
 * A runtime stands between the program and libc: its interceptor `read` is what the
 * program calls, and passes the call on.  What an interceptor calls in libc is the
 * program's call; whatever else of the runtime calls libc does it for itself, unless
 * it was asked by the interceptor of that very function.  (TSan's of pthread_create
 * also starts a thread of TSan's own.)
 */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/abi/rollback.h"
#include "engine/abi/table.h"
#include "engine/outside/follow/runtime.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/patch/patch.h"
#include "engine/outside/plan/plan_parts.h"
#include "engine/outside/session/memory.h"

#define BRIDGE		(128u << 10)	/* between functions of a runtime */
#define BRIDGE_SMALL	512		/* aliases, `operator new`, labels of assembly */
#define BRIDGE_STRIPPED	(1u << 20)	/* where only what it exports is named */
#define NAME_SIZE	64

static bool base_begins(const char *path, const char *const *names, size_t n)
{
	const char *base = strrchr(path, '/');

	for (size_t i = 0; base && i < n; i++)
		if (!strncmp(base + 1, names[i], strlen(names[i])))
			return true;
	return false;
}

bool runtime_is_library(const char *path)
{
	static const char *const names[] = { "libasan.so", "libubsan.so", "liblsan.so",
					     "libtsan.so", "libclang_rt." };

	return base_begins(path, names, sizeof(names) / sizeof(names[0]));
}

/* And libgcc, by which runtimes walk the stack: it, too, is called and calls on. */
bool runtime_is_libc(const char *path)
{
	static const char *const names[] = { "libc.so.6", "libc-2.", "libpthread.so.0",
					     "libpthread-2.", "libgcc_s.so" };

	return base_begins(path, names, sizeof(names) / sizeof(names[0]));
}

/* glibc's, up to 2.33 by its version.  musl's is its libc, whose calls are the program's. */
bool runtime_is_loader(const char *path)
{
	static const char *const names[] = { "ld-linux", "ld-2." };

	return base_begins(path, names, sizeof(names) / sizeof(names[0]));
}

/* --- symbols ------------------------------------------------------------------------ */

struct functions {
	struct elf_view v;
	const uint8_t *at, *names;
	uint64_t n, names_len;
};

static bool table_take(struct functions *f, const struct elf_section *s)
{
	struct elf_section names;

	if (!elf_section(&f->v, s->link, &names))
		return false;
	f->at = elf_section_bytes(&f->v, s);
	f->n = s->len / sizeof(Elf64_Sym);
	f->names = elf_section_bytes(&f->v, &names);
	f->names_len = names.len;
	return f->at && f->names && f->names_len && !f->names[f->names_len - 1];
}

/* The file's symbols of one kind, SHT_SYMTAB or SHT_DYNSYM. */
static bool table_open(struct functions *f, uint32_t type)
{
	struct elf_section s;

	for (unsigned i = 0; elf_section(&f->v, i, &s); i++)
		if (s.type == type)
			return table_take(f, &s);
	return false;
}

static const char *symbol_at(const struct functions *f, uint64_t i, Elf64_Sym *s)
{
	memcpy(s, f->at + i * sizeof(*s), sizeof(*s));
	return s->st_name < f->names_len ? (const char *)f->names + s->st_name : NULL;
}

static bool is_function(const Elf64_Sym *s)
{
	unsigned type = ELF64_ST_TYPE(s->st_info);

	return s->st_shndx && s->st_value &&
	       (type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE);
}

/* --- a runtime within a program ------------------------------------------------------- */

static bool name_is_runtime(const char *name)
{
	static const char *const parts[] = {
		"__asan", "__lsan", "__msan", "__tsan", "__ubsan", "__sanitizer",
		"__interception", "__interceptor_", "__sancov",
	};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (strstr(name, parts[i]))
			return true;
	return false;
}

/* asan_rtl.cpp, sanitizer_posix.cpp, ...; Debian names the archive's members, .o */
static bool file_is_runtime(const char *name)
{
	static const char *const parts[] = { "asan_", "lsan_", "msan_", "tsan_", "ubsan_",
					     "sanitizer_", "interception_", "sancov_" };
	const char *end = strrchr(name, '.');

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (!strncmp(name, parts[i], strlen(parts[i])) && end &&
		    (!strcmp(end, ".cpp") || !strcmp(end, ".cc") || !strcmp(end, ".S") ||
		     !strcmp(end, ".o")))
			return true;
	return false;
}

struct stretch {
	uint64_t from, to;
};

static int by_start(const void *a, const void *b)
{
	const struct stretch *x = a, *y = b;

	return (x->from > y->from) - (x->from < y->from);
}

static int by_size(const void *a, const void *b)
{
	const struct stretch *x = a, *y = b;
	uint64_t m = x->to - x->from, n = y->to - y->from;

	return (m < n) - (m > n);
}

/* Behind its last byte; a size that its segment does not have is not believed. */
static uint64_t symbol_end(const struct functions *f, const Elf64_Sym *s)
{
	const struct elf_load *l = elf_exec(&f->v, s->st_value);
	uint64_t room = l ? l->vaddr + l->len - s->st_value : 0;

	return s->st_value + (s->st_size < room ? s->st_size : room);
}

/* The runtime's functions; how many.  free() them. */
static size_t stretches_collect(const struct functions *f, struct stretch **stretches)
{
	struct stretch *all = calloc(f->n ? f->n : 1, sizeof(*all));
	bool of_runtime = false;
	size_t n = 0;

	*stretches = all;
	for (uint64_t i = 0; all && i < f->n; i++) {
		Elf64_Sym s;
		const char *name = symbol_at(f, i, &s);

		if (name && ELF64_ST_TYPE(s.st_info) == STT_FILE)
			of_runtime = file_is_runtime(name);
		else if (name && is_function(&s) && elf_exec(&f->v, s.st_value) &&
			 (name_is_runtime(name) ||
			  (of_runtime && ELF64_ST_BIND(s.st_info) == STB_LOCAL)))
			all[n++] = (struct stretch){ s.st_value, symbol_end(f, &s) };
	}
	return n;
}

/* Libbacktrace, which gcc's runtimes have in them: its own functions are all local. */
static bool file_is_backtrace(const char *name)
{
	static const char *const names[] = { "elf.", "dwarf.", "fileline.", "posix.", "mmap.",
					     "mmapio.", "sort.", "state.", "cp-demangle." };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strncmp(name, names[i], strlen(names[i])))
			return true;
	return false;
}

static bool only_backtrace(const struct functions *f, uint64_t from, uint64_t to)
{
	bool of_backtrace = false;

	for (uint64_t i = 0; i < f->n; i++) {
		Elf64_Sym s;
		const char *name = symbol_at(f, i, &s);

		if (name && ELF64_ST_TYPE(s.st_info) == STT_FILE)
			of_backtrace = file_is_backtrace(name) || file_is_runtime(name);
		else if (name && is_function(&s) && s.st_value >= from && s.st_value < to &&
			 !(of_backtrace && ELF64_ST_BIND(s.st_info) == STB_LOCAL))
			return false;
	}
	return true;
}

/* Where only what a library exports is named, nothing can be said of what is between. */
static bool is_together(const struct functions *f, uint64_t end, uint64_t next, bool whole)
{
	return next <= end + BRIDGE_SMALL ||
	       (whole ? next <= end + BRIDGE && only_backtrace(f, end, next)
		      : next <= end + BRIDGE_STRIPPED);
}

/* Makes one of those that lie together. */
static size_t stretches_join(const struct functions *f, struct stretch *s, size_t n,
			     bool whole)
{
	size_t kept = 0;

	qsort(s, n, sizeof(*s), by_start);
	for (size_t i = 0; i < n; i++) {
		if (kept && is_together(f, s[kept - 1].to, s[i].from, whole)) {
			if (s[i].to > s[kept - 1].to)
				s[kept - 1].to = s[i].to;
		} else {
			s[kept++] = s[i];
		}
	}
	qsort(s, kept, sizeof(*s), by_size);
	return kept;
}

/* Sets out what of the stretches lies in the mapping. */
static unsigned ranges_fill(const struct functions *f, const struct stretch *s, size_t n,
			    const struct map *m, struct code_range_at range[RUNTIME_RANGES])
{
	unsigned out = 0;

	for (size_t i = 0; i < n && out < RUNTIME_RANGES; i++) {
		const struct elf_load *l = elf_exec(&f->v, s[i].from);
		uint64_t at = m->start + (s[i].from - l->vaddr + l->off) - m->offset;

		if (at >= m->start && at < m->end)
			range[out++] = (struct code_range_at){ at, at + (s[i].to - s[i].from) };
	}
	return out;
}

unsigned runtime_in_program(pid_t pid, const struct map *m,
			    struct code_range_at range[RUNTIME_RANGES])
{
	struct functions f = { 0 };
	struct stretch *stretches = NULL;
	int fd = patch_open(pid, m);
	unsigned out = 0;
	size_t n;

	if (fd < 0)
		return 0;
	if (!elf_open_file(&f.v, fd, ELF_HEADERS)) {
		bool whole = table_open(&f, SHT_SYMTAB);

		if (whole || table_open(&f, SHT_DYNSYM)) {
			n = stretches_collect(&f, &stretches);
			n = stretches_join(&f, stretches, n, whole);
			out = ranges_fill(&f, stretches, n, m, range);
			free(stretches);
		}
		elf_close(&f.v);
	}
	close(fd);
	return out;
}

uint64_t runtime_unwind(pid_t pid, const struct map *m)
{
	struct elf_view v;
	uint64_t at = 0;
	int fd = patch_open(pid, m);

	if (fd < 0)
		return 0;
	if (!elf_open_file(&v, fd, ELF_HEADERS)) {
		for (unsigned i = 0; i < v.nload && v.eh_frame_hdr; i++)
			if (v.load[i].exec && m->offset <= v.load[i].off + v.load[i].len &&
			    v.load[i].off < m->offset + (m->end - m->start))
				at = m->start - m->offset + v.load[i].off - v.load[i].vaddr +
				     v.eh_frame_hdr;
		elf_close(&v);
	}
	close(fd);
	return at;
}

/* An object or function that the program exports; its size, or 0. */
static uint64_t exported_at(const struct functions *f, const struct map *m, const char *wanted,
			    uint64_t *at)
{
	for (uint64_t i = 0; i < f->n; i++) {
		Elf64_Sym s;
		const char *name = symbol_at(f, i, &s);

		if (!name || !s.st_shndx || strcmp(name, wanted))
			continue;
		for (unsigned k = 0; k < f->v.nload; k++) {
			const struct elf_load *l = &f->v.load[k];

			if (!l->exec || m->offset > l->off + l->len ||
			    l->off >= m->offset + (m->end - m->start))
				continue;
			*at = m->start - m->offset + l->off - l->vaddr + s.st_value;
			return s.st_size;
		}
	}
	return 0;
}

struct checkpoint_runtime runtime_of_checkpoints(pid_t pid, const struct map *m)
{
	struct checkpoint_runtime r = { 0 };
	struct functions f = { 0 };
	int fd = patch_open(pid, m);
	uint64_t size, code;

	if (fd < 0)
		return r;
	if (!elf_open_file(&f.v, fd, ELF_HEADERS)) {
		if (table_open(&f, SHT_DYNSYM)) {
			code = exported_at(&f, m, ROLLBACK_KERNEL, &r.kernel.from);
			r.kernel.to = r.kernel.from + code;
			size = exported_at(&f, m, ROLLBACK_NAME, &r.contract);
			if (!code || size < sizeof(struct rollback))
				r.contract = 0;
		}
		elf_close(&f.v);
	}
	close(fd);
	return r;
}

/* Another build's structure may be shorter: its head says whose it is. */
bool runtime_checkpoints_fit(pid_t pid, const struct checkpoint_runtime *r, bool asked)
{
	struct { uint64_t sign; uint32_t version; } __attribute__((packed)) head;

	if (memory_peek(pid, r->contract, &head, sizeof(head)) != sizeof(head) ||
	    head.sign != ROLLBACK_SIGN)
		return false;
	if (head.version != ROLLBACK_VERSION && asked)
		say_error("build it anew by this mve's mve-cc", "pid %d: no request of it is taken "
			  "back: its checkpoints are of another mve's mve-cc (layout %u, not %u)",
			  pid, head.version, ROLLBACK_VERSION);
	return head.version == ROLLBACK_VERSION;
}

/* Where the file's function of this name lies in the mapping; or 0. */
static uint64_t function_at(const struct functions *f, const struct map *m, const char *wanted)
{
	for (uint64_t i = 0; i < f->n; i++) {
		Elf64_Sym s;
		const char *name = symbol_at(f, i, &s);
		const struct elf_load *l;

		if (!name || !is_function(&s) || strcmp(name + strspn(name, "_"), wanted))
			continue;
		l = elf_exec(&f->v, s.st_value);
		if (l)
			return m->start + (s.st_value - l->vaddr + l->off) - m->offset;
	}
	return 0;
}

uint64_t runtime_sigaction(pid_t pid, const struct map *m)
{
	struct functions f = { 0 };
	int fd = patch_open(pid, m);
	uint64_t at = 0;

	if (fd < 0)
		return 0;
	if (!elf_open_file(&f.v, fd, ELF_HEADERS)) {
		if ((table_open(&f, SHT_DYNSYM) && function_at(&f, m, "tsan_init")) ||
		    (table_open(&f, SHT_SYMTAB) && function_at(&f, m, "tsan_init")))
			at = function_at(&f, m, "interceptor_sigaction");
		elf_close(&f.v);
	}
	close(fd);
	return at;
}

/* --- whose call it is ----------------------------------------------------------------- */

/* What an interceptor stands for: "___interceptor_read.part.0" for read. */
static bool interceptor_name(const char *symbol, char name[NAME_SIZE])
{
	const char *at = symbol + strspn(symbol, "_");
	size_t len;

	if (at == symbol || strncmp(at, "interceptor_", 12))
		return false;
	at += 12;
	if (!strncmp(at, "trampoline_", 11))
		at += 11;
	len = strcspn(at, ".");
	if (!len || len >= NAME_SIZE)
		return false;
	memcpy(name, at, len);
	name[len] = 0;
	return true;
}

/* What is asked of the functions at an address. */
struct question {
	const char *is;			/* one of this name, */
	char interceptor[NAME_SIZE];	/* or an interceptor: of what */
	char name[NAME_SIZE];		/* if it has none such: any; "": it is not known */
};

static bool function_answers(const struct functions *f, uint64_t vaddr, struct question *q)
{
	for (uint64_t i = 0; i < f->n; i++) {
		Elf64_Sym s;
		const char *name = symbol_at(f, i, &s);

		if (!name || !is_function(&s) || vaddr < s.st_value ||
		    vaddr - s.st_value >= s.st_size)
			continue;
		if (q->is ? !strcmp(name, q->is) : interceptor_name(name, q->interceptor))
			return true;
		snprintf(q->name, sizeof(q->name), "%s", name);
	}
	return false;
}

static bool file_answers(int fd, uint64_t offset, struct question *q)
{
	struct functions f = { 0 };
	bool yes = false;

	if (elf_open_file(&f.v, fd, ELF_HEADERS))
		return false;
	for (unsigned i = 0; i < f.v.nload && !yes; i++) {
		const struct elf_load *l = &f.v.load[i];
		uint64_t vaddr = offset - l->off + l->vaddr;

		if (!l->exec || offset - l->off >= l->len)
			continue;
		yes = (table_open(&f, SHT_DYNSYM) && function_answers(&f, vaddr, q)) ||
		      (table_open(&f, SHT_SYMTAB) && function_answers(&f, vaddr, q));
	}
	elf_close(&f.v);
	return yes;
}

/* Of the function that a return address leads back to. */
static bool caller_answers(pid_t pid, const struct maps *maps, uint64_t at, struct question *q)
{
	bool yes = false;

	at--;
	for (size_t i = 0; i < maps->n; i++) {
		const struct map *m = &maps->map[i];
		int fd;

		if (!m->exec || !m->inode || at < m->start || at >= m->end)
			continue;
		fd = patch_open(pid, m);
		if (fd < 0)
			return false;
		yes = file_answers(fd, at - m->start + m->offset, q);
		close(fd);
	}
	return yes;
}

/* signal(), too, is rt_sigaction. */
static bool is_call_of(const char *function, uint64_t nr)
{
	const struct call_desc *d = call_find((long)nr);
	const char *name = d ? d->name : "";

	if (!strcmp(name, "rt_sigaction") && strstr(function, "signal"))
		return true;
	return !strcmp(function, name) || (!strncmp(name, "rt_", 3) && !strcmp(function, name + 3));
}

/*
 * The interceptors of sigaction and signal jump to functions that have their work in
 * common (TSan's sigaction_impl, signal_impl), which no library exports; whatever else
 * the runtime does with signals begins in one that is.
 */
static bool is_sigaction(const struct question *q, uint64_t nr)
{
	return nr == SYS_rt_sigaction && (!q->name[0] || strstr(q->name, "sigaction") ||
					  strstr(q->name, "signal_impl"));
}

/* A runtime prints by itself; what it has stdio write, as TSan does at exit, is the program's. */
static bool flushes(pid_t pid, const struct maps *maps, uint64_t libc)
{
	struct question q = { .is = "fflush" };

	return caller_answers(pid, maps, libc, &q);
}

static bool outer_passes_on(pid_t pid, const struct maps *maps, uint64_t nr, uint64_t libc,
			    uint64_t outer)
{
	struct question q = { 0 }, same = { .is = q.interceptor };

	if (!caller_answers(pid, maps, outer, &q))
		return is_sigaction(&q, nr);
	return is_call_of(q.interceptor, nr) ||
	       (strcmp(q.interceptor, "pthread_create") && caller_answers(pid, maps, libc, &same));
}

/* A function of the runtime that calls what the program gave it. */
static bool calls_program(const struct question *q)
{
	static const char *const parts[] = { "SignalHandler", "SignalAction", "sighandler",
					     "ThreadStart", "thread_start", "AtExitWrapper",
					     "exit_callback" };

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (strstr(q->name, parts[i]))
			return true;
	return false;
}

/*
 * The runtime calls interceptors, too: libbacktrace does, and so does a report that was
 * begun by an interceptor.  But scanf's goes on to vscanf's.  And a handler of the program
 * whose last act is a call jumps to its interceptor: above that stands what of the runtime
 * has called the handler.
 */
static bool is_same_work(const char *outer, const char *inner)
{
	const char *last = strrchr(outer, '_');

	return strstr(inner, last ? last + 1 : outer) != NULL;
}

bool runtime_calls(pid_t pid, uint64_t nr, uint64_t libc, uint64_t inner, uint64_t outer)
{
	struct question q = { 0 }, on_top = { 0 };
	bool passed_on;
	struct maps maps;

	if (maps_read(pid, &maps))
		return true;
	passed_on = (caller_answers(pid, &maps, inner, &q) &&
		     (inner == outer ||
		      (caller_answers(pid, &maps, outer, &on_top)
			       ? is_same_work(on_top.interceptor, q.interceptor)
			       : calls_program(&on_top)))) ||
		    outer_passes_on(pid, &maps, nr, libc, outer) || flushes(pid, &maps, libc);
	maps_free(&maps);
	say_log("caller", "%d: call %lu by 0x%lx, 0x%lx, 0x%lx is %s", pid, nr, libc, inner, outer,
		passed_on ? "the program's" : "the runtime's");
	return !passed_on;
}
