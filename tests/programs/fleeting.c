/*
 * Files that are mapped and gone at once: a library of the program's own making, loaded from
 * a temporary file, as Java and Python do; and code that is mapped by hand.
 */
#include <dlfcn.h>
#include "check.h"

#define ROUNDS	5

static void copy(const char *from, int to)
{
	char part[4096];
	int fd = open(from, O_RDONLY);
	ssize_t n;

	CHECK(fd >= 0 && to >= 0);
	while ((n = read(fd, part, sizeof(part))) > 0)
		CHECK_EQ(write(to, part, (size_t)n), n);
	CHECK(!n && !close(fd) && !close(to));
}

static void loaded(void)
{
	char name[] = "./lib-XXXXXX";
	void *lib;
	long (*at_load)(void);

	copy(beside("plugin"), mkstemp(name));
	lib = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	CHECK(!unlink(name));
	if (!lib)
		printf("%s\n", dlerror());
	CHECK(lib);
	at_load = dlsym(lib, "plugin_pid_at_load");
	CHECK(at_load);
	CHECK_EQ(at_load(), getpid());
	CHECK_EQ(dlclose(lib), 0);
	/* There is none: each version finds that out for itself. */
	CHECK(!dlopen(name, RTLD_NOW) && !dlopen("libnothing-of-that-name.so", RTLD_NOW));
}

static void mapped(void)
{
	char name[] = "./map-XXXXXX";
	const char *code;
	int fd;

	copy(beside("plugin"), mkstemp(name));
	fd = open(name, O_RDONLY);
	CHECK(fd >= 0);
	code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	CHECK(!unlink(name) && !close(fd));
	CHECK(code != MAP_FAILED && !memcmp(code, "\177ELF", 4));
	CHECK(!munmap((void *)code, 4096));
}

int main(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		loaded();
		mapped();
	}
	return passed("fleeting");
}
