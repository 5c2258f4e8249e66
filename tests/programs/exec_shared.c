/*
 * A program that is started again and again has its libraries' code as a native one has it:
 * not as copies of its own.  And code that is mapped by hand, more than once, makes its calls.
 *
 *	exec_shared [shared]
 */
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include "check.h"

#define STARTS	12

struct found {
	char path[256];
	uint64_t base, vaddr, offset, len;
};

static int look(struct dl_phdr_info *info, size_t size, void *out)
{
	struct found *f = out;

	(void)size;
	for (int i = 0; strstr(info->dlpi_name, "libc.so") && i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X))
			continue;
		snprintf(f->path, sizeof(f->path), "%s", info->dlpi_name);
		f->base = info->dlpi_addr;
		f->vaddr = p->p_vaddr & ~4095ull;
		f->offset = p->p_offset & ~4095ull;
		f->len = (p->p_memsz + (p->p_vaddr & 4095) + 4095) & ~4095ull;
	}
	return 0;
}

/* The program's own table leads there, not to a stub. */
static void call_copies(const struct found *f)
{
	uint64_t own = (uint64_t)dlsym(RTLD_DEFAULT, "getppid");

	CHECK(own >= f->base + f->vaddr && own < f->base + f->vaddr + f->len);
	for (int i = 0; i < 3; i++) {
		int fd = open(f->path, O_RDONLY);
		char *copy = mmap(NULL, f->len, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd,
				  (off_t)f->offset);

		CHECK(copy != MAP_FAILED);
		close(fd);
		CHECK_EQ(((pid_t (*)(void))(copy + (own - f->base - f->vaddr)))(), getppid());
	}
}

/* Pages of libc's code that are this process's alone. */
static long own_kb(const struct found *f)
{
	uint64_t text = f->base + f->vaddr, start, end;
	bool here = false;
	long all = 0, kb;
	char line[512];
	FILE *maps = fopen("/proc/self/smaps", "r");

	CHECK(maps);
	while (fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			here = start >= text && end <= text + f->len;
		if (here && sscanf(line, "Private_Dirty: %ld", &kb) == 1)
			all += kb;
	}
	fclose(maps);
	return all;
}

static int started(const char *what)
{
	struct found f = { 0 };

	dl_iterate_phdr(look, &f);
	CHECK(f.len);
	if (!strcmp(what, "calls"))
		call_copies(&f);
	return !strcmp(what, "shared") && own_kb(&f) ? 1 : 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "calls";
	char *again[] = { argv[0], (char *)what, "started", NULL };
	int clean = 0, status;

	if (argc > 2)
		return started(what);
	for (int i = 0; i < STARTS; i++) {
		pid_t pid = fork();

		if (!pid) {
			execv("/proc/self/exe", again);
			_exit(127);
		}
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) <= 1);
		clean += !WEXITSTATUS(status);
	}
	/* The first ones are how it is learnt which are started again. */
	CHECK(clean >= STARTS / 2);
	return passed("exec_shared");
}
