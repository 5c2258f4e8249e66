/*
 * Inside the printer: the words and sentences that its files share.  Nobody
 * outside engine/outside/print*.c includes this.
 */
#ifndef MVE_OUTSIDE_PRINT_PARTS_H
#define MVE_OUTSIDE_PRINT_PARTS_H

#include "engine/outside/print/print.h"
#include "engine/outside/print/xlat.h"

#define STRING_LIMIT	32	/* bytes of a string before "..." */
#define ARRAY_LIMIT	32	/* elements of an array before "..." */
#define PATH_LIMIT	4096
#define MADE_UP		0xffffff0000000000ull	/* no program's addresses: print_event.c */

/* print_text.c: words */
void pr(struct call_print *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void pr_addr(struct call_print *p, uint64_t addr);
void pr_quoted(struct call_print *p, const void *bytes, size_t len);
void pr_hexed(struct call_print *p, const void *bytes, size_t len);
void pr_flags(struct call_print *p, const struct xlat *set, uint64_t value);
void pr_more_flags(struct call_print *p, const struct xlat *set, uint64_t value);
void pr_enum(struct call_print *p, const struct xlat *set, uint64_t value);
void pr_signal(struct call_print *p, int sig);
void pr_mode(struct call_print *p, unsigned mode);
void pr_file_mode(struct call_print *p, unsigned mode);
void pr_dev(struct call_print *p, uint64_t dev);
void pr_id(struct call_print *p, uint32_t id);
void pr_dirfd(struct call_print *p, int fd);
void pr_open_flags(struct call_print *p, uint64_t flags);
void pr_sigset(struct call_print *p, const void *set, size_t size);

/* Whatever pr() writes from note_begin() to note_end() goes to the note. */
void note_begin(struct call_print *p);
void note_end(struct call_print *p);

/* print_text.c: memory */
bool mem_get(struct call_print *p, uint64_t addr, void *buf, size_t len);
size_t mem_get_some(struct call_print *p, uint64_t addr, void *buf, size_t len);
/* Like mem_get(), but prints the address when it fails. */
bool pr_fetch(struct call_print *p, uint64_t addr, void *buf, size_t len);
void pr_string(struct call_print *p, uint64_t addr);	/* up to a NUL, cut at 32 */
void pr_path(struct call_print *p, uint64_t addr, size_t limit);
/* What a newer program has behind the part of a struct that is known. */
void pr_tail(struct call_print *p, uint64_t addr, uint64_t known, uint64_t size);
void pr_buffer(struct call_print *p, uint64_t addr, uint64_t len);
void pr_rest(struct call_print *p, uint64_t addr);	/* of an array, from addr on: not there */

static inline bool call_failed(const struct call_print *p)
{
	return p->exiting && p->ret < 0 && p->ret >= -4095;
}

/* How to print what an argument points to. */
struct layout_print {
	/* one element of known size */
	void (*one)(struct call_print *p, const void *data);
	/* the whole, when elements are not of one size or need more of the call */
	void (*at)(struct call_print *p, uint64_t addr, uint64_t count, unsigned arg);
};

extern const struct layout_print print_layouts[LAYOUT_COUNT];	/* print_layout.c */

/* Prints values whose set is not just a list of names; false when not one. */
bool print_value(struct call_print *p, unsigned xlat, uint64_t value);	/* print_value.c */

/* Calls with code of their own: print.c asks for the row of a number. */
struct print_special {
	long nr;
	void (*enter)(struct call_print *p);	/* instead of the arguments */
	void (*exit)(struct call_print *p);	/* the rest of them */
};

const struct print_special *print_special_find(long nr);	/* print_special.c */

/* Print arguments from p->next to `last`, with commas. */
void print_args(struct call_print *p, unsigned last);

/* The two shapes of a layout's printer. */
#define PR_ONE(fn) void fn(struct call_print *p, const void *data)
#define PR_AT(fn) void fn(struct call_print *p, uint64_t addr, uint64_t count, unsigned arg)

/* print_file.c */
PR_ONE(pr_stat);
PR_ONE(pr_statfs);
PR_ONE(pr_statx);
PR_ONE(pr_flock);
PR_ONE(pr_owner);
PR_ONE(pr_epoll_event);
PR_ONE(pr_ustat);
PR_ONE(pr_mq_attr);
PR_ONE(pr_winsize);
PR_ONE(pr_termios);
PR_AT(pr_uring_params);
PR_ONE(pr_cstat);
PR_ONE(pr_cstatrange);
PR_AT(pr_dirents);
PR_AT(pr_dirents64);
PR_AT(pr_open_how);
PR_AT(pr_offset);
PR_AT(pr_file_handle);
PR_AT(pr_epoll_at);
PR_ONE(pr_io_event);
PR_ONE(pr_iocb);
PR_AT(pr_iocb_list);

/* print_time.c */
void pr_date(struct call_print *p, int64_t seconds, long fraction, int digits);
PR_ONE(pr_timespec);
PR_ONE(pr_timeval);
PR_ONE(pr_timezone);
PR_ONE(pr_itimerval);
PR_ONE(pr_itimerspec);
PR_ONE(pr_utimbuf);
PR_ONE(pr_tms);
PR_ONE(pr_time);
PR_ONE(pr_rlimit);
PR_ONE(pr_rusage);
PR_ONE(pr_sysinfo);
PR_ONE(pr_timex);
PR_AT(pr_timespec_at);
PR_AT(pr_utimes);
PR_AT(pr_utimes_ns);
PR_AT(pr_rusage_at);

/* print_signal.c */
PR_ONE(pr_sigaction);
PR_ONE(pr_siginfo);
PR_AT(pr_sigevent);
PR_ONE(pr_stack);
PR_ONE(pr_signum);
PR_AT(pr_siginfo_at);
PR_AT(pr_sigset_at);
PR_AT(pr_sigset_arg);
PR_AT(pr_wstatus);

/* print_net.c */
PR_AT(pr_sockaddr_at);
PR_AT(pr_socklen);
PR_AT(pr_sockopt);
PR_AT(pr_iovec);
PR_AT(pr_iovaddr);
PR_AT(pr_msghdr);
PR_AT(pr_mmsghdr);
PR_AT(pr_ifreq_at);
void pr_vectors(struct call_print *p, uint64_t addr, uint64_t count, int64_t left,
		bool contents);
void pr_sockaddr(struct call_print *p, const void *data, size_t len);
void special_sockopt(struct call_print *p);

/* print_proc.c */
PR_ONE(pr_utsname);
PR_ONE(pr_caphdr);
PR_ONE(pr_capdata);
PR_ONE(pr_sched_param);
PR_ONE(pr_fprog);
PR_AT(pr_landlock);
PR_ONE(pr_sembuf);
PR_ONE(pr_futex_waitv);
PR_ONE(pr_shmid);
PR_AT(pr_strv);
PR_AT(pr_cpumask);
PR_AT(pr_clone_args);
PR_AT(pr_taskname);
PR_AT(pr_msgbuf);
PR_AT(pr_sched_attr);

#endif
