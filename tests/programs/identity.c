/*
 * What a program can read about itself: /proc/self, the auxiliary vector,
 * argv and environment on its stack, its personality, its name.
 */
#include <elf.h>
#include <sys/auxv.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include "check.h"

extern char **environ;
extern const char __ehdr_start[];

static ssize_t slurp(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY);

	CHECK(fd >= 0);
	ssize_t n = read(fd, text, size - 1);
	CHECK(n >= 0);
	text[n] = '\0';
	close(fd);
	return n;
}

static void proc_files(char **argv)
{
	char text[8192], link[PATH_MAX] = "", *at = text;

	ssize_t n = slurp("/proc/self/cmdline", text, sizeof(text));
	for (; *argv; argv++, at += strlen(at) + 1)
		CHECK(!strcmp(*argv, at));
	CHECK_EQ(at - text, n);
	slurp("/proc/self/comm", text, sizeof(text));
	CHECK(!strcmp(text, "identity\n"));
	CHECK(readlink("/proc/self/exe", link, sizeof(link) - 1) > 0);
	CHECK(!strcmp(strrchr(link, '/'), "/identity"));
	slurp("/proc/self/stat", text, sizeof(text));
	CHECK_EQ(atoi(text), getpid());
	slurp("/proc/self/environ", text, sizeof(text));
	CHECK(!environ[0] || !strcmp(text, environ[0]));
	CHECK(readlink("/proc/self/cwd", link, sizeof(link) - 1) > 0);
}

static void auxiliary_vector(void)
{
	const Elf64_Ehdr *ehdr = (const void *)__ehdr_start;
	const Elf64_auxv_t *aux;
	char **p = environ;
	int entries = 0;

	CHECK_EQ(getauxval(AT_PAGESZ), 4096);
	CHECK_EQ(getauxval(AT_PHDR), (uintptr_t)ehdr + ehdr->e_phoff);
	CHECK_EQ(getauxval(AT_PHNUM), ehdr->e_phnum);
	CHECK_EQ(getauxval(AT_UID), getuid());
	CHECK_EQ(getauxval(AT_GID), getgid());
	CHECK_EQ(getauxval(AT_SECURE), 0);
	CHECK_EQ(getauxval(AT_CLKTCK), sysconf(_SC_CLK_TCK));
	CHECK(!strcmp((char *)getauxval(AT_PLATFORM), "x86_64"));
	CHECK(strstr((char *)getauxval(AT_EXECFN), "identity"));
	CHECK(getauxval(AT_RANDOM));
	while (*p)
		p++;
	for (aux = (void *)(p + 1); aux->a_type != AT_NULL; aux++)
		entries++;
	CHECK(entries >= 15 && entries < 60);
	CHECK(((uintptr_t)environ & 7) == 0);
}

static const Elf64_Phdr *segment(const Elf64_Ehdr *ehdr, unsigned type)
{
	const Elf64_Phdr *ph = (void *)((char *)ehdr + ehdr->e_phoff);

	for (int i = 0; i < ehdr->e_phnum; i++)
		if (ph[i].p_type == type)
			return &ph[i];
	return NULL;
}

/* Looks up a function in the vDSO, as libc, Go and musl do. */
static void *vdso_function(const Elf64_Ehdr *ehdr, const char *name)
{
	const Elf64_Phdr *load = segment(ehdr, PT_LOAD);
	const Elf64_Phdr *dynamic = segment(ehdr, PT_DYNAMIC);
	CHECK(load && dynamic);
	char *base = (char *)ehdr - load->p_vaddr + load->p_offset;
	const Elf64_Sym *symbols = NULL;
	const char *strings = NULL;
	const Elf64_Word *hash = NULL;

	for (const Elf64_Dyn *d = (void *)(base + dynamic->p_vaddr); d->d_tag; d++) {
		if (d->d_tag == DT_SYMTAB)
			symbols = (void *)(base + d->d_un.d_ptr);
		else if (d->d_tag == DT_STRTAB)
			strings = base + d->d_un.d_ptr;
		else if (d->d_tag == DT_HASH)
			hash = (void *)(base + d->d_un.d_ptr);
	}
	CHECK(symbols && strings);
	for (Elf64_Word i = 0; hash && i < hash[1]; i++)
		if (!strcmp(strings + symbols[i].st_name, name) &&
		    symbols[i].st_shndx != SHN_UNDEF)
			return base + symbols[i].st_value;
	return NULL;
}

/* As a libc does: it asks how large a state is, and has one mapped. */
static void vdso_random(const Elf64_Ehdr *ehdr)
{
	static const char *const names[] = { "__vdso_clock_gettime", "clock_gettime",
		"__vdso_gettimeofday", "gettimeofday", "__vdso_time", "time", "__vdso_clock_getres",
		"clock_getres", "__vdso_getcpu", "getcpu", "__vdso_getrandom", "getrandom" };
	struct { uint32_t size, prot, flags, reserved[13]; } want = { 0 };
	ssize_t (*random)(void *, size_t, unsigned, void *, size_t) =
		vdso_function(ehdr, "__vdso_getrandom");
	char bytes[2][64] = { { 0 } };
	void *state;

	for (size_t i = 0; i < COUNT(names); i++)
		printf("%s: %s\n", names[i], vdso_function(ehdr, names[i]) ? "yes" : "no");
	if (!random || random(NULL, 0, 0, &want, ~0ul))
		return;
	state = mmap(NULL, 4096, (int)want.prot, (int)want.flags, -1, 0);
	CHECK(state != MAP_FAILED && want.size <= 4096);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(random(bytes[i], 64, 0, state, want.size), 64);
	CHECK(memcmp(bytes[0], bytes[1], 64));
}

static void vdso(void)
{
	const Elf64_Ehdr *ehdr = (void *)getauxval(AT_SYSINFO_EHDR);
	struct timespec t = { 0 };

	CHECK(ehdr && !memcmp(ehdr->e_ident, ELFMAG, SELFMAG));
	int (*get_time)(clockid_t, struct timespec *) =
		vdso_function(ehdr, "__vdso_clock_gettime");
	if (!get_time) {
		printf("the vDSO has no DT_HASH\n");
		return;
	}
	CHECK_EQ(get_time(CLOCK_REALTIME, &t), 0);
	CHECK(t.tv_sec > 1000000000);
	vdso_random(ehdr);
}

static void names(void)
{
	char name[17] = "", text[64];

	CHECK_EQ(prctl(PR_GET_NAME, name), 0);
	CHECK(!strcmp(name, "identity"));
	CHECK_EQ(prctl(PR_SET_NAME, "renamed"), 0);
	slurp("/proc/self/comm", text, sizeof(text));
	CHECK(!strcmp(text, "renamed\n"));
}

int main(int argc, char **argv)
{
	proc_files(argv);
	auxiliary_vector();
	vdso();
	names();
	printf("personality %#x, dumpable %d, argc %d, %s\n",
	       personality(0xffffffff), prctl(PR_GET_DUMPABLE), argc,
	       getenv("LC_ALL") ?: "no LC_ALL");
	return passed("identity");
}
