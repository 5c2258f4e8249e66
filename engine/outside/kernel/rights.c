/*
 * Which user and groups a process acts as, as the kernel has it.
 */
#include <stdio.h>
#include <string.h>

#include "engine/outside/kernel/rights.h"

struct rights {
	unsigned uid[4], gid[4];
};

static bool rights_read(pid_t pid, struct rights *r)
{
	char path[64], line[256];
	unsigned found = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	while (f && found < 2 && fgets(line, sizeof(line), f))
		found += sscanf(line, "Uid:%u%u%u%u", r->uid, r->uid + 1, r->uid + 2, r->uid + 3) == 4 ||
			 sscanf(line, "Gid:%u%u%u%u", r->gid, r->gid + 1, r->gid + 2, r->gid + 3) == 4;
	if (f)
		fclose(f);
	return found == 2;
}

bool rights_cover(pid_t asker, pid_t twin)
{
	struct rights a, b;

	return rights_read(asker, &a) &&
	       (!a.uid[1] || (rights_read(twin, &b) && !memcmp(&a, &b, sizeof(a))));
}
