/*
 * Processes that libc makes without the handlers of fork (seam.c): as the program calls for them
 * the request is over.
 */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include "engine/checkpoint/seam/calls.h"
#include "engine/checkpoint/seam/seam.h"

void seam_process(void)
{
	seam_end("it had made a process");
}

/* It returns twice to who has called it, so it is not called from here. */
__asm__(".pushsection .text\n"
	".globl mve_seam_vfork\n"
	".hidden mve_seam_vfork\n"
	".type mve_seam_vfork, @function\n"
	"mve_seam_vfork:\n"
	"	sub	$8, %rsp\n"
	"	call	seam_process\n"
	"	add	$8, %rsp\n"
	"	jmp	*vfork@GOTPCREL(%rip)\n"
	".size mve_seam_vfork, . - mve_seam_vfork\n"
	".popsection");

int mve_seam_system(const char *command)
{
	seam_process();
	return system(command);
}

FILE *mve_seam_popen(const char *command, const char *how)
{
	seam_process();
	return popen(command, how);
}

int mve_seam_posix_spawn(pid_t *made, const char *path, const posix_spawn_file_actions_t *actions,
			 const posix_spawnattr_t *attributes, char *const *argv, char *const *envp)
{
	seam_process();
	seam_written(made, sizeof(*made));
	return posix_spawn(made, path, actions, attributes, argv, envp);
}

int mve_seam_posix_spawnp(pid_t *made, const char *file, const posix_spawn_file_actions_t *actions,
			  const posix_spawnattr_t *attributes, char *const *argv, char *const *envp)
{
	seam_process();
	seam_written(made, sizeof(*made));
	return posix_spawnp(made, file, actions, attributes, argv, envp);
}
