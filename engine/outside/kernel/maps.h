/*
 * The memory map of a process, read from /proc.
 */
#ifndef MVE_OUTSIDE_MAPS_H
#define MVE_OUTSIDE_MAPS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct map {
	uint64_t start, end, offset;
	dev_t dev;
	ino_t inode;
	bool read, write, exec, shared;
	bool shelved;		/* a part of the shelf (shelf.h): what is said is its file's */
	uint64_t link, link_end;	/* /proc/PID/map_files has its file by these; or 0 */
	char path[256];		/* cut short if longer; [vdso], [stack], … */
};

struct maps {
	struct map *map;
	size_t n;
};

/* Reads the map of pid; 0 or a negative errno.  maps_free() in both cases. */
int maps_read(pid_t pid, struct maps *m);
/*
 * Those that meet [start, end), and perhaps others: where the kernel can be asked for them
 * alone, a program with many mappings costs no more than one with few.
 */
int maps_read_part(pid_t pid, uint64_t start, uint64_t end, struct maps *m);
/* Those that are shared, and perhaps others, likewise. */
int maps_read_shared(pid_t pid, struct maps *m);
void maps_free(struct maps *m);
/* What is at a place of the process, in words: "at libc.so.6+0x10", or "at 0x10". */
void maps_place(pid_t pid, uint64_t place, char *words, size_t size);
/*
 * A memfd of that name: no other file is on their device.  The name is whoever made it's: of
 * what this session has made shared_is_ours() knows the numbers.
 */
#define MAP_INSIDE	"mve-inside"
#define MAP_AREA	"mve-area"
#define MAP_CONDUCT	"mve-conduct"
bool map_is_memory(const struct map *m, const char *name);
/* A session holds the process: it has the inside's code and an area, not one of them by chance. */
bool maps_held(const struct maps *m);
/* The inside's image, and what it has mapped for itself, far below its code (abi/boot.h). */
bool map_is_insides(const struct map *m);
bool maps_own(const struct maps *m, const struct map *at);

/*
 * A hole of len bytes that a 32-bit displacement reaches from all of
 * [start, end): its address, or 0 when there is none.
 */
uint64_t maps_hole_near(const struct maps *m, uint64_t start, uint64_t end,
			uint64_t len);

#endif
