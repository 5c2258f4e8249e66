/*
 * A library loaded, used and unloaded again and again: its call sites come
 * and go, at the same addresses or others.
 */
#include <dlfcn.h>
#include "check.h"

static void use(const char *path)
{
	void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	CHECK(lib);
	long (*at_load)(void) = dlsym(lib, "plugin_pid_at_load");
	long (*call)(long, long, long, long) = dlsym(lib, "plugin_call");
	long (*get_pid)(void) = dlsym(lib, "plugin_getpid");
	CHECK(at_load && call && get_pid);
	CHECK_EQ(at_load(), getpid());
	for (int i = 0; i < 5; i++) {
		CHECK_EQ(get_pid(), getpid());
		CHECK_EQ(call(SYS_getppid, 0, 0, 0), getppid());
		CHECK_EQ(call(SYS_close, -1, 0, 0), -EBADF);
	}
	CHECK_EQ(dlclose(lib), 0);
}

/* The same file from another place, so that both are mapped at once. */
static void use_two(const char *path)
{
	void *one = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	void *two = dlmopen(LM_ID_NEWLM, path, RTLD_NOW);

	CHECK(one && two);
	for (int i = 0; i < 5; i++) {
		CHECK_EQ(((long (*)(void))dlsym(one, "plugin_getpid"))(), getpid());
		CHECK_EQ(((long (*)(void))dlsym(two, "plugin_getpid"))(), getpid());
	}
	dlclose(two);
	dlclose(one);
}

int main(void)
{
	const char *path = beside("plugin");

	for (int i = 0; i < 200; i++)
		use(path);
	use_two(path);
	for (int i = 0; i < 20; i++) {
		void *lib = dlopen("libm.so.6", RTLD_NOW);
		CHECK(lib);
		dlclose(lib);
	}
	return passed("dlopen");
}
