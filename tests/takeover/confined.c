/* confined N: opens N rule sets of Landlock, and confines itself twice by the last. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	unsigned long handled = 1ul << 12;	/* symbolic links */
	long rules = -1;

	if (argc != 2 || prctl(PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L))
		return 2;
	for (int i = atoi(argv[1]); i; i--)
		rules = syscall(444 /* landlock_create_ruleset */, &handled, sizeof(handled), 0);
	if (rules < 0)
		return 77;
	for (int i = 0; i < 2; i++)
		if (syscall(446 /* landlock_restrict_self */, rules, 0))
			return 1;
	puts(symlink("elsewhere", "link") ? "no link" : "a link");
	return 0;
}
