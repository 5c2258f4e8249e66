/* Every exit status from 0 to 255 is the child's own, and wraps beyond. */
#include "check.h"

static int code;

static void leave(void)
{
	exit(code);
}

static void leave_at_once(void)
{
	raw3(SYS_exit_group, code, 0, 0);
}

int main(void)
{
	for (code = 0; code < 256; code++) {
		CHECK_EQ(child_status(leave), EXITED(code));
		CHECK_EQ(child_status(leave_at_once), EXITED(code));
	}
	for (code = -300; code < 1000; code += 111)
		CHECK_EQ(child_status(leave_at_once), EXITED(code & 255));
	return passed("exits");
}
