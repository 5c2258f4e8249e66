/*
 * The memory of a process, which may not answer: then -ETIME (reach.h).
 */
#ifndef MVE_OUTSIDE_MEMORY_H
#define MVE_OUTSIDE_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* As by an open /proc/PID/mem, code, too; 0 or a negative errno. */
int memory_open(pid_t pid);
void memory_close(int memory);
int memory_read(int memory, uint64_t at, void *to, size_t len);
int memory_write(int memory, uint64_t at, const void *from, size_t len);
/*
 * Many at once, which costs little more than one of them, in their order: 0, or a negative
 * errno at the first that is not to be had.
 */
struct memory_part {
	uint64_t at;
	void *bytes;
	size_t len;
};
int memory_read_parts(int memory, const struct memory_part *part, unsigned n);
int memory_write_parts(int memory, const struct memory_part *part, unsigned n);

/*
 * Without a descriptor, of a process that may run: what there is up to the first hole; bytes
 * read, or a negative errno.
 */
long memory_peek(pid_t pid, uint64_t at, void *to, size_t len);
/* All of it, where it may be written: 0 or a negative errno. */
int memory_poke(pid_t pid, uint64_t at, const void *from, size_t len);

#endif
