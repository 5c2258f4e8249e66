/*
 * Answers lines, and changes memory with each: globals, and some that it allocates.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct row {
	int lines, last;
	long seen;		/* never changed */
};

struct row table[4];

int main(void)
{
	long *counts = calloc(1000, sizeof(*counts));
	char byte;

	for (long line = 0; counts && read(0, &byte, 1) == 1; line++) {
		table[line % 4].lines++;
		table[line % 4].last = (int)line;
		counts[line % 1000] += line;
		if (write(1, "line\n", 5) != 5)
			return 1;
	}
	return !counts;
}
