/* mve replay --gdb. */
#ifndef MVE_REPLAY_GDB_H
#define MVE_REPLAY_GDB_H

struct gdb_want {
	const char *folder;
	const char *until;	/* where it is to stand first; NULL: at the first event */
	char **options;		/* of mve replay */
	int n_options;
	char **command;		/* none: what was recorded */
	int n_command;
};

/* Becomes gdb; an exit code: it could not. */
int replay_gdb(const struct gdb_want *w);

#endif
