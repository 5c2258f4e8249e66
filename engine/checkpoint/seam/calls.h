/* What the program calls: libc's functions, and the seam. */
#ifndef MVE_CHECKPOINT_CALLS_H
#define MVE_CHECKPOINT_CALLS_H

#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>

/* For calls of other libraries (tls.c).  What is about to be written; a connection is about to be
 * answered; something has come on one that was accepted: what the call is to return. */
void seam_written(const void *at, size_t size);
void seam_answers(int fd);
ssize_t seam_brought(int fd, const void *bytes, ssize_t got);

int mve_seam_SSL_read(void *ssl, void *to, int size);
int mve_seam_SSL_read_ex(void *ssl, void *to, size_t size, size_t *got);
int mve_seam_SSL_write(void *ssl, const void *from, int size);
int mve_seam_SSL_write_ex(void *ssl, const void *from, size_t size, size_t *put);
int mve_seam_SSL_accept(void *ssl);
int mve_seam_SSL_do_handshake(void *ssl);
int mve_seam_SSL_shutdown(void *ssl);
int mve_seam_accept(int fd, struct sockaddr *from, socklen_t *size);
int mve_seam_accept4(int fd, struct sockaddr *from, socklen_t *size, int flags);
int mve_seam_close(int fd);
int mve_seam_fclose(FILE *file);
int mve_seam_close_range(unsigned first, unsigned last, int flags);
int mve_seam_dup(int from);
int mve_seam_dup2(int from, int to);
int mve_seam_dup3(int from, int to, int flags);
int mve_seam_fcntl(int fd, int what, ...);
int mve_seam_shutdown(int fd, int how);
ssize_t mve_seam_read(int fd, void *to, size_t size);
ssize_t mve_seam_readv(int fd, const struct iovec *parts, int number);
ssize_t mve_seam_recv(int fd, void *to, size_t size, int flags);
ssize_t mve_seam_recvfrom(int fd, void *to, size_t size, int flags, struct sockaddr *from,
			  socklen_t *from_size);
ssize_t mve_seam_recvmsg(int fd, struct msghdr *message, int flags);
ssize_t mve_seam_write(int fd, const void *from, size_t size);
ssize_t mve_seam_writev(int fd, const struct iovec *parts, int number);
ssize_t mve_seam_send(int fd, const void *from, size_t size, int flags);
ssize_t mve_seam_sendto(int fd, const void *from, size_t size, int flags,
			const struct sockaddr *to, socklen_t to_size);
ssize_t mve_seam_sendmsg(int fd, const struct msghdr *message, int flags);
int mve_seam_sendmmsg(int fd, struct mmsghdr *messages, unsigned number, int flags);
ssize_t mve_seam_sendfile(int fd, int from, off_t *at, size_t size);
ssize_t mve_seam_splice(int from, off64_t *from_at, int fd, off64_t *at, size_t size,
			unsigned flags);
int mve_seam_epoll_wait(int fd, struct epoll_event *events, int most, int timeout);
int mve_seam_epoll_pwait(int fd, struct epoll_event *events, int most, int timeout,
			 const sigset_t *mask);
int mve_seam_epoll_pwait2(int fd, struct epoll_event *events, int most,
			  const struct timespec *timeout, const sigset_t *mask);
int mve_seam_epoll_ctl(int fd, int what, int which, struct epoll_event *event);
int mve_seam_poll(struct pollfd *fds, nfds_t number, int timeout);
int mve_seam_ppoll(struct pollfd *fds, nfds_t number, const struct timespec *timeout,
		   const sigset_t *mask);
int mve_seam_sigaction(int sig, const struct sigaction *action, struct sigaction *old);
sighandler_t mve_seam_signal(int sig, sighandler_t handler);
int mve_seam_siginterrupt(int sig, int interrupts);
int mve_seam_sigprocmask(int how, const sigset_t *set, sigset_t *old);
int mve_seam_pthread_sigmask(int how, const sigset_t *set, sigset_t *old);
int mve_seam_select(int most, fd_set *in, fd_set *out, fd_set *other, struct timeval *timeout);
int mve_seam_pselect(int most, fd_set *in, fd_set *out, fd_set *other,
		     const struct timespec *timeout, const sigset_t *mask);
int mve_seam_setuid(uid_t user);
int mve_seam_seteuid(uid_t user);
int mve_seam_setreuid(uid_t real, uid_t effective);
int mve_seam_setresuid(uid_t real, uid_t effective, uid_t saved);
int mve_seam_chroot(const char *root);
int mve_seam_getnameinfo(const struct sockaddr *of, socklen_t size, char *host, socklen_t host_size,
			 char *service, socklen_t service_size, int flags);
int mve_seam_setcontext(const ucontext_t *to);
int mve_seam_swapcontext(ucontext_t *from, const ucontext_t *to);
struct tm *mve_seam_gmtime_r(const time_t *when, struct tm *to);
/* libstdc++'s, of a list (lists.c). */
struct list_link {
	struct list_link *next, *prev;
};

void mve_seam_list_hook(struct list_link *link, struct list_link *next);
void mve_seam_list_unhook(struct list_link *link);
void mve_seam_list_transfer(struct list_link *next, struct list_link *first,
			    struct list_link *last);
void mve_seam_list_reverse(struct list_link *head);
void mve_seam_list_swap(struct list_link *one, struct list_link *other);
pid_t mve_seam_vfork(void);
long mve_seam_syscall(long number, ...);
int mve_seam_system(const char *command);
FILE *mve_seam_popen(const char *command, const char *how);
int mve_seam_posix_spawn(pid_t *made, const char *path, const posix_spawn_file_actions_t *actions,
			 const posix_spawnattr_t *attributes, char *const *argv, char *const *envp);
int mve_seam_posix_spawnp(pid_t *made, const char *file, const posix_spawn_file_actions_t *actions,
			  const posix_spawnattr_t *attributes, char *const *argv,
			  char *const *envp);

#endif
