/* Memory that does not answer: whoever reads it waits. */
#ifndef TESTS_ATTACK_MIRE_H
#define TESTS_ATTACK_MIRE_H

#include <stdbool.h>

/* A call that the inside does not see. */
typedef long mire_call(long nr, long a, long b, long c, long d, long e, long f);

struct mire {
	char *at;	/* of two pages; NULL: it could not be made */
	int fd;		/* who has it can answer */
	int file, server;	/* of a file: its descriptor, its process; or 0 */
};

/* As root: a page that a userfaultfd is to fill, or a file's that a FUSE is to read. */
struct mire mire_by_fault(mire_call *call);
/* `closes`: of a file that can be closed: its last words are heard. */
struct mire mire_by_file(mire_call *call, const char *folder, bool closes);
/* The process' map is held by who waits for the file, and wanted by others, from now on. */
void mire_map_held(mire_call *call, const struct mire *file);
void mire_end(mire_call *call, const struct mire *m);

#endif
