/*
 * Processes that libc makes without the handlers of fork (seam.c): as the program calls for them
 * the request is over.
 */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
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

/* What has no function of libc's of its own. */
void seam_syscall(long number)
{
	if (number == SYS_clone || number == SYS_clone3 || number == SYS_fork ||
	    number == SYS_vfork)
		seam_process();
}

/* So it does for clone. */
__asm__(".pushsection .text\n"
	".globl mve_seam_syscall\n"
	".hidden mve_seam_syscall\n"
	".type mve_seam_syscall, @function\n"
	"mve_seam_syscall:\n"
	"	push	%rdi\n"
	"	push	%rsi\n"
	"	push	%rdx\n"
	"	push	%rcx\n"
	"	push	%r8\n"
	"	push	%r9\n"
	"	sub	$8, %rsp\n"
	"	call	seam_syscall\n"
	"	add	$8, %rsp\n"
	"	pop	%r9\n"
	"	pop	%r8\n"
	"	pop	%rcx\n"
	"	pop	%rdx\n"
	"	pop	%rsi\n"
	"	pop	%rdi\n"
	"	jmp	*syscall@GOTPCREL(%rip)\n"
	".size mve_seam_syscall, . - mve_seam_syscall\n"
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
