/* libc's code, mapped once more, where the server and its worker agree on. */
#ifndef TESTS_ATTACK_CODE_H
#define TESTS_ATTACK_CODE_H

#include <stdbool.h>
#include <stdint.h>

struct code {
	char path[512];
	uint64_t len, offset;
};

/* Of the libc that this process has; false: there is none. */
bool code_find(struct code *c);

/* In a copy that may be written: what no libc has, on each page. */
void code_plant(char *at, const struct code *c);

/* Maps it there, for the inside to see to it; -1: what is there is not the file's. */
int code_map(void *at);

#endif
