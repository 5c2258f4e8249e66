/* See code.h. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/attack/code.h"

#define PAGE	4096
#define PLANTED	"planted!"	/* at the end of each page */

bool code_find(struct code *c)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	uint64_t from, to;
	char line[600];
	bool found = false;

	while (maps && !found && fgets(line, sizeof(line), maps))
		found = strstr(line, "/libc.") &&
			sscanf(line, "%lx-%lx r-xp %lx %*s %*s %511s", &from, &to, &c->offset,
			       c->path) == 4;
	if (maps)
		fclose(maps);
	c->len = found ? to - from : 0;
	return found;
}

void code_plant(char *at, const struct code *c)
{
	for (uint64_t page = PAGE; page <= c->len; page += PAGE)
		memcpy(at + page - strlen(PLANTED), PLANTED, strlen(PLANTED));
}

static bool is_planted(const char *at, uint64_t len)
{
	for (uint64_t page = PAGE; page <= len; page += PAGE)
		if (!memcmp(at + page - strlen(PLANTED), PLANTED, strlen(PLANTED)))
			return true;
	return false;
}

int code_map(void *at)
{
	struct code c;
	int fd, planted;

	if (!code_find(&c))
		return -1;
	fd = open(c.path, O_RDONLY | O_CLOEXEC);
	if (mmap(at, c.len, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED_NOREPLACE, fd,
		 (off_t)c.offset) != at)
		return -1;
	planted = is_planted(at, c.len);
	close(fd);
	return munmap(at, c.len) || planted ? -1 : 0;
}
