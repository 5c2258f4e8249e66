/* Around each case: it is made, comes to its point, and shows its state when it is asked. */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/update/update.h"

static int *on_stack_at;
#define on_stack (*on_stack_at)
static void make(void);
static void show(void);

int main(void)
{
	int local = 5;
	char line[16];

	if (!mve_updating()) {
		on_stack_at = &local;
		make();
		on_stack_at = NULL;
		printf("ready on port 0\n");
	}
	for (;;) {
		ssize_t n;

		fflush(stdout);
		mve_update_point("main");
		n = read(0, line, sizeof(line));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return 0;
		show();
		printf(".\n");
	}
}
