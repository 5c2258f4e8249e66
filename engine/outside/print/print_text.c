/*
 * The printer's words: growing text, quoted strings, flags, numbers and names,
 * and reading the program's memory.
 *
 * Everything is appended to p->text; note_begin() turns the stream into the note
 * that strace puts in brackets after the result.  When memory for the text is
 * short, or a line grows past PRINT_TEXT_MAX, the rest of the line is dropped:
 * printing must never stop a program.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "engine/core/must.h"
#include "engine/outside/print/print_parts.h"

static bool text_room(struct call_print *p, size_t more)
{
	size_t need = p->len + more + 1, cap = p->cap ? p->cap : 256;
	char *text;

	MUST(p->cap ? p->len < p->cap : !p->len);
	if (need <= p->cap)
		return true;
	if (need > PRINT_TEXT_MAX)
		return false;
	while (cap < need)
		cap *= 2;
	text = realloc(p->text, cap);
	if (!text)
		return false;
	p->text = text;
	p->cap = cap;
	return true;
}

static void pr_raw(struct call_print *p, const char *s, size_t len)
{
	if (!text_room(p, len))
		return;
	memcpy(p->text + p->len, s, len);
	p->len += len;
	p->text[p->len] = 0;
}

void pr(struct call_print *p, const char *fmt, ...)
{
	char small[256];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(small, sizeof(small), fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	if ((size_t)n < sizeof(small)) {
		pr_raw(p, small, n);
		return;
	}
	if (!text_room(p, n))
		return;
	va_start(ap, fmt);
	p->len += vsnprintf(p->text + p->len, n + 1, fmt, ap);
	va_end(ap);
}

static void note_swap(struct call_print *p)
{
	struct print_text t = { p->text, p->len, p->cap };

	p->text = p->note.text;
	p->len = p->note.len;
	p->cap = p->note.cap;
	p->note = t;
}

void note_begin(struct call_print *p)
{
	MUST(p->exiting);	/* it stands behind the result */
	p->noted = true;
	note_swap(p);
}

void note_end(struct call_print *p)
{
	note_swap(p);
}

void pr_addr(struct call_print *p, uint64_t addr)
{
	if (addr >= MADE_UP && p->partial)
		pr(p, "?");
	else if (addr)
		pr(p, "0x%llx", (unsigned long long)addr);
	else
		pr(p, "NULL");
}

/* One byte of a string; `next` decides how long an octal escape must be. */
static size_t escape(char *out, unsigned char c, int next)
{
	static const char short_names[] = "t\tn\nv\vf\fr\r\"\"\\\\";

	for (const char *s = short_names; *s; s += 2) {
		if (s[1] == (char)c) {
			out[0] = '\\';
			out[1] = s[0];
			return 2;
		}
	}
	if (c >= ' ' && c < 0x7f) {
		out[0] = c;
		return 1;
	}
	return sprintf(out, next >= '0' && next <= '7' ? "\\%03o" : "\\%o", c);
}

void pr_quoted(struct call_print *p, const void *bytes, size_t len)
{
	const unsigned char *b = bytes;
	char out[8];

	pr_raw(p, "\"", 1);
	for (size_t i = 0; i < len; i++)
		pr_raw(p, out, escape(out, b[i], i + 1 < len ? b[i + 1] : 0));
	pr_raw(p, "\"", 1);
}

void pr_hexed(struct call_print *p, const void *bytes, size_t len)
{
	const unsigned char *b = bytes;

	pr_raw(p, "\"", 1);
	for (size_t i = 0; i < len; i++)
		pr(p, "\\x%02x", b[i]);
	pr_raw(p, "\"", 1);
}

static void pr_unnamed(struct call_print *p, const struct xlat *set, uint64_t value)
{
	pr(p, "%#llx", (unsigned long long)value);
	if (set->unknown[0])
		pr(p, " /* %s */", set->unknown);
}

void pr_flags(struct call_print *p, const struct xlat *set, uint64_t value)
{
	const char *sep = "";
	uint64_t left = value;

	for (unsigned i = 0; i < set->count && (left || !value); i++) {
		const struct xlat_value *v = &set->values[i];

		if (v->value == value || (v->value && (left & v->value) == v->value)) {
			pr(p, "%s%s", sep, v->name);
			sep = "|";
			left &= ~v->value;
			if (!value)
				return;
		}
	}
	if (left && *sep)
		pr(p, "|0x%llx", (unsigned long long)left);
	else if (left)
		pr_unnamed(p, set, left);
	else if (!value)
		pr(p, "0");
}

/* Flags behind something else: no comment on those without a name. */
void pr_more_flags(struct call_print *p, const struct xlat *set, uint64_t value)
{
	bool named = false;

	if (!value)
		return;
	for (unsigned i = 0; i < set->count; i++)
		named |= set->values[i].value &&
			 (value & set->values[i].value) == set->values[i].value;
	if (named) {
		pr(p, "|");
		pr_flags(p, set, value);
	} else {
		pr(p, "|0x%llx", (unsigned long long)value);
	}
}

void pr_enum(struct call_print *p, const struct xlat *set, uint64_t value)
{
	const char *name = xlat_name(set, value);

	if (name)
		pr(p, "%s", name);
	else
		pr_unnamed(p, set, value);
}

void pr_signal(struct call_print *p, int sig)
{
	const char *name = sig > 0 ? xlat_name(&xlat_signals, sig) : NULL;

	if (name && sig < 65)
		pr(p, "%s", name);
	else
		pr(p, "%d", sig);
}

void pr_mode(struct call_print *p, unsigned mode)
{
	pr(p, "%#03o", mode & 0xffff);
}

/* A mode with its file type, as in st_mode. */
void pr_file_mode(struct call_print *p, unsigned mode)
{
	static const struct xlat_value bits[] = {
		{ S_ISUID, "S_ISUID" }, { S_ISGID, "S_ISGID" }, { S_ISVTX, "S_ISVTX" },
	};
	const char *type = xlat_name(&xlat_file_types, mode & S_IFMT);

	if (!type) {
		pr(p, "%#03o", mode);
		return;
	}
	pr(p, "%s|", type);
	for (unsigned i = 0; i < 3; i++)
		if (mode & bits[i].value)
			pr(p, "%s|", bits[i].name);
	pr(p, "%#03o", mode & 0777 & ~S_IFMT);
}

void pr_dev(struct call_print *p, uint64_t dev)
{
	pr(p, "makedev(%#x, %#x)", major(dev), minor(dev));
}

void pr_id(struct call_print *p, uint32_t id)
{
	if (id == UINT32_MAX)
		pr(p, "-1");
	else
		pr(p, "%u", id);
}

void pr_dirfd(struct call_print *p, int fd)
{
	if (fd == AT_FDCWD)
		pr(p, "AT_FDCWD");
	else
		pr(p, "%d", fd);
}

void pr_open_flags(struct call_print *p, uint64_t flags)
{
	static const char *const modes[] = { "O_RDONLY", "O_WRONLY", "O_RDWR", "O_ACCMODE" };

	pr(p, "%s", modes[flags & 3]);
	pr_more_flags(p, &xlat_open_flags, flags & ~3ull);
}

static const char *short_signal(int sig, char *buf)
{
	const char *name = xlat_name(&xlat_signals, sig);

	if (name)
		return name + 3;
	sprintf(buf, "%u", sig);
	return buf;
}

/* [INT TERM], or the complement when most are in: ~[KILL STOP]. */
void pr_sigset(struct call_print *p, const void *set, size_t size)
{
	uint8_t bits[128] = { 0 };
	char number[16];
	const char *sep = "";
	unsigned count = 0, n;

	if (size > sizeof(bits))
		size = sizeof(bits);
	memcpy(bits, set, size);
	n = size * 8;
	for (unsigned i = 0; i < n; i++)
		count += bits[i / 8] >> (i % 8) & 1;
	bool inverted = n && count >= 64 * 2 / 3;

	pr(p, inverted ? "~[" : "[");
	for (unsigned i = 0; i < n; i++) {
		if ((bits[i / 8] >> (i % 8) & 1) == inverted)
			continue;
		pr(p, "%s%s", sep, short_signal(i + 1, number));
		sep = " ";
	}
	pr(p, "]");
}

size_t mem_get_some(struct call_print *p, uint64_t addr, void *buf, size_t len)
{
	long n = addr && len ? p->mem->read(p->mem->ctx, addr, buf, len) : 0;

	return n > 0 ? (size_t)n : 0;
}

bool mem_get(struct call_print *p, uint64_t addr, void *buf, size_t len)
{
	return mem_get_some(p, addr, buf, len) == len;
}

/* strace looks behind no pointer once the call has failed; what was printed at entry stays. */
bool pr_fetch(struct call_print *p, uint64_t addr, void *buf, size_t len)
{
	if (!call_failed(p) && mem_get(p, addr, buf, len))
		return true;
	pr_addr(p, addr);
	return false;
}

/*
 * A C string.  Memory is read in pieces that end at a page, so that a string at
 * the end of a mapping is read in full.
 */
static size_t read_string(struct call_print *p, uint64_t addr, char *buf, size_t max)
{
	size_t len = 0;

	while (len < max) {
		size_t part = 4096 - ((addr + len) & 4095), got;
		char *nul;

		if (part > max - len)
			part = max - len;
		if (part > 256)
			part = 256;
		got = mem_get_some(p, addr + len, buf + len, part);
		nul = memchr(buf + len, 0, got);
		if (nul)
			return nul - buf;
		len += got;
		if (got < part)
			return SIZE_MAX;
	}
	return max;
}

void pr_string(struct call_print *p, uint64_t addr)
{
	pr_path(p, addr, STRING_LIMIT);
}

void pr_path(struct call_print *p, uint64_t addr, size_t limit)
{
	char buf[PATH_LIMIT + 1];
	size_t len;

	if (limit > PATH_LIMIT)
		limit = PATH_LIMIT;
	len = call_failed(p) ? SIZE_MAX : read_string(p, addr, buf, limit + 1);
	if (len == SIZE_MAX) {
		pr_addr(p, addr);
		return;
	}
	pr_quoted(p, buf, len > limit ? limit : len);
	if (len > limit)
		pr(p, "...");
}

void pr_tail(struct call_print *p, uint64_t addr, uint64_t known, uint64_t size)
{
	uint8_t bytes[256];
	uint64_t len = size - known, i;

	MUST(size > known);
	if (size > 4096 || len > sizeof(bytes)) {
		pr(p, ", ...");
		return;
	}
	if (!mem_get(p, addr + known, bytes, len)) {
		pr(p, ", ???");
		return;
	}
	for (i = 0; i < len && !bytes[i]; i++)
		;
	if (i == len)
		return;
	pr(p, ", /* bytes %llu..%llu */ ", (unsigned long long)known,
	   (unsigned long long)size - 1);
	pr_hexed(p, bytes, len > STRING_LIMIT ? STRING_LIMIT : len);
	if (len > STRING_LIMIT)
		pr(p, "...");
}

void pr_buffer(struct call_print *p, uint64_t addr, uint64_t len)
{
	char buf[STRING_LIMIT] = "";
	size_t want = len > STRING_LIMIT ? STRING_LIMIT : len;
	bool readable = addr && (int64_t)len >= 0 && !call_failed(p);
	size_t got = readable ? mem_get_some(p, addr, buf, want) : 0;

	if (!readable || (got < want && !(p->partial && got))) {
		pr_addr(p, addr);
		return;
	}
	pr_quoted(p, buf, got);
	if (len > got)
		pr(p, "...");
}

void pr_rest(struct call_print *p, uint64_t addr)
{
	if (p->partial)
		pr(p, ", ...");
	else
		pr(p, ", ... /* 0x%llx */", (unsigned long long)addr);
}
