/*
 * What a twin may come to cost.  A fork shares all pages until somebody writes them: at worst,
 * in the end, none.  What the kernel counts for that is asked of it without a look at the
 * process' mappings, for which the loop might have to wait.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/outside/kernel/cgroup.h"
#include "engine/outside/late/cost.h"

#define TEXT_SIZE	8192

static void text_read(int folder, const char *name, char text[TEXT_SIZE])
{
	int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, TEXT_SIZE - 1);

	if (fd >= 0)
		close(fd);
	text[n < 0 ? 0 : n] = 0;
}

/* The number behind that word at the beginning of a line; 0: there is none. */
static uint64_t number_behind(const char *text, const char *word)
{
	size_t n = strlen(word);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, word, n))
			return strtoull(line + n, NULL, 10);
	}
	return 0;
}

uint64_t cost_of(pid_t pid)
{
	char name[64], text[TEXT_SIZE];

	MUST(pid > 0);
	snprintf(name, sizeof(name), "/proc/%d/status", pid);
	text_read(AT_FDCWD, name, text);
	return (number_behind(text, "RssAnon:") + number_behind(text, "VmSwap:")) * 1024;
}

/* A file's number; false: "max", or no such file. */
static bool number_in(int folder, const char *name, uint64_t *number)
{
	char text[TEXT_SIZE];

	text_read(folder, name, text);
	*number = strtoull(text, NULL, 10);
	return text[0] >= '0' && text[0] <= '9';
}

/* What its limit leaves; what it has of files the kernel takes back where that is needed. */
static uint64_t room_in(int folder)
{
	char text[TEXT_SIZE];
	uint64_t most, used, files;

	if (!(number_in(folder, "memory.max", &most) &&
	      number_in(folder, "memory.current", &used)) &&
	    !(number_in(folder, "memory.limit_in_bytes", &most) &&
	      number_in(folder, "memory.usage_in_bytes", &used)))
		return UINT64_MAX;
	text_read(folder, "memory.stat", text);
	files = number_behind(text, "inactive_file ") + number_behind(text, "active_file ");
	used -= files < used ? files : used;
	return most > used ? most - used : 0;
}

/* The process', and all those that it lies in. */
static uint64_t room_in_cgroups(pid_t pid)
{
	char path[PATH_MAX];
	int folder = cgroup_memory(pid, path, sizeof(path));
	uint64_t least = UINT64_MAX;

	for (const char *at = path; folder >= 0 && at; at = strchr(at + 1, '/')) {
		uint64_t room = room_in(folder);
		int above = openat(folder, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);

		least = room < least ? room : least;
		close(folder);
		folder = above;
	}
	if (folder >= 0)
		close(folder);
	return least;
}

uint64_t cost_room(pid_t pid)
{
	char text[TEXT_SIZE];
	uint64_t machine, own = room_in_cgroups(getpid()), cgroups = room_in_cgroups(pid);

	cgroups = own < cgroups ? own : cgroups;

	text_read(AT_FDCWD, "/proc/meminfo", text);
	machine = number_behind(text, "MemAvailable:") * 1024;
	return machine < cgroups ? machine : cgroups;
}
