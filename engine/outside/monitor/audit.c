/*
 * The reader of the witness, see audit.h.  It loads bpf/audit.bpf.c from its
 * skeleton, tells it which processes belong to the session and where their
 * gates are, and sums its per-CPU tables.
 *
 * The kernel writes counts and strays; this file writes rows of processes, and
 * only of such as are stopped, so that a row never changes under a running
 * call.  Rows of children appear and vanish in the kernel alone.
 *
 * libbpf prints to stderr by habit, and its hook is one per process: it is
 * turned to a string while audit_open() runs and put back after.
 *
 * The tables are summed when asked for; nothing here runs per call.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "engine/core/pairs.h"
#include "engine/outside/monitor/audit.h"
#include "bpf/audit.skel.h"

#define KERNEL_BTF	"/sys/kernel/btf/vmlinux"
#define FIRST_PID_NS	0xeffffffcu	/* PROC_PID_INIT_INO */

struct audit {
	struct audit_bpf *skel;
	struct audit_table *cpu;	/* one table per possible CPU */
	int cpus;
};

static char why[256];

const char *audit_why(void)
{
	return why;
}

/* Keeps the first warning: the later ones only say that it failed. */
static int keep_warning(enum libbpf_print_level level, const char *format,
			va_list args)
{
	if (level != LIBBPF_WARN || why[0])
		return 0;
	vsnprintf(why, sizeof(why), format, args);
	why[strcspn(why, "\n")] = '\0';
	return 0;
}

static int refuse(int err, const char *words)
{
	snprintf(why, sizeof(why), "%s", words);
	return -err;
}

/* Rows are keyed by the first namespace's ids: ours must be the same. */
static int check_machine(void)
{
	struct stat st;

	if (stat("/proc/self/ns/pid", &st) || st.st_ino != FIRST_PID_NS)
		return refuse(ENOTSUP, "in a container's process id namespace");
	if (access(KERNEL_BTF, R_OK))
		return refuse(ENOTSUP, "no kernel BTF at " KERNEL_BTF);
	return 0;
}

/*
 * Machines without the page may lack the tracepoint, and have no such calls.
 * Asking the kernel's BTF would cost some milliseconds more.
 */
static bool has_vsyscall_page(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	bool found = false;

	while (maps && !found && fgets(line, sizeof(line), maps))
		found = strstr(line, "[vsyscall]") != NULL;
	if (maps)
		fclose(maps);
	return found;
}

static int load(struct audit_bpf *skel)
{
	int err;

	if (!has_vsyscall_page())
		bpf_program__set_autoload(skel->progs.vsyscall, false);
	err = audit_bpf__load(skel);
	return err ? err : audit_bpf__attach(skel);
}

static int open_all(struct audit *a)
{
	int err = check_machine();

	if (err)
		return err;
	a->cpus = libbpf_num_possible_cpus();
	if (a->cpus < 0)
		return a->cpus;
	a->cpu = calloc(a->cpus, sizeof(*a->cpu));
	if (!a->cpu)
		return -ENOMEM;
	a->skel = audit_bpf__open();
	return a->skel ? load(a->skel) : -errno;
}

struct audit *audit_open(void)
{
	struct audit *a = calloc(1, sizeof(*a));
	libbpf_print_fn_t before;
	int err;

	if (!a)
		return NULL;
	why[0] = '\0';
	before = libbpf_set_print(keep_warning);
	err = open_all(a);
	libbpf_set_print(before);
	if (!err) {
		why[0] = '\0';
		return a;
	}
	audit_close(a);
	if (err == -EPERM)
		err = refuse(EPERM, "CAP_BPF and CAP_PERFMON are needed");
	else if (!why[0])
		snprintf(why, sizeof(why), "%s", strerror(-err));
	errno = -err;
	return NULL;
}

static int put_row(struct audit *a, pid_t tgid,
		   const struct audit_ranges *ranges, uint64_t flags)
{
	struct audit_row row = { .held = ranges != NULL };
	uint32_t key = tgid;

	if (ranges)
		memcpy(row.span, ranges->span, sizeof(row.span));
	return bpf_map__update_elem(a->skel->maps.rows, &key, sizeof(key),
				    &row, sizeof(row), flags);
}

int audit_add(struct audit *a, pid_t tgid, const struct audit_ranges *ranges)
{
	int err = put_row(a, tgid, ranges, BPF_ANY);

	if (!err && kill(tgid, 0) && errno == ESRCH) {
		audit_drop(a, tgid);
		return -ESRCH;
	}
	return err;
}

int audit_set_image(struct audit *a, pid_t tgid,
		    const struct audit_ranges *ranges)
{
	return put_row(a, tgid, ranges, BPF_EXIST);
}

int audit_drop(struct audit *a, pid_t tgid)
{
	uint32_t key = tgid;

	return bpf_map__delete_elem(a->skel->maps.rows, &key, sizeof(key), 0);
}

static int sum_table(struct audit *a, uint32_t where, uint64_t *n,
		     uint64_t *total)
{
	size_t bytes = a->cpus * sizeof(*a->cpu);
	int err;

	err = bpf_map__lookup_elem(a->skel->maps.tables, &where, sizeof(where),
				   a->cpu, bytes, 0);
	if (err)
		return err;
	for (int cpu = 0; cpu < a->cpus; cpu++) {
		for (int slot = 0; slot < AUDIT_SLOTS; slot++) {
			n[slot] += a->cpu[cpu].n[slot];
			*total += a->cpu[cpu].n[slot];
		}
	}
	return 0;
}

/* The kernel skips a program that it interrupted itself in, and says so. */
static uint64_t misses(const struct bpf_program *program)
{
	struct bpf_prog_info info = { 0 };
	uint32_t size = sizeof(info);

	if (bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &size))
		return 0;
	return info.recursion_misses;
}

int audit_read(struct audit *a, struct audit_counts *out)
{
	struct audit_bpf *skel = a->skel;
	int err;

	memset(out, 0, sizeof(*out));
	for (int w = 0; w < AUDIT_WHERES; w++) {
		err = sum_table(a, w, out->n[w], &out->total[w]);
		if (err)
			return err;
	}
	out->strays = __atomic_load_n(&skel->bss->strays, __ATOMIC_RELAXED);
	out->lost = __atomic_load_n(&skel->bss->lost, __ATOMIC_RELAXED);
	out->missed = misses(skel->progs.enter) + misses(skel->progs.forked);
	out->has_vsyscall = skel->links.vsyscall != NULL;
	return 0;
}

/* A row that the kernel is writing, or has just written again, is left out. */
static bool read_stray(const volatile struct audit_stray_row *row,
		       uint64_t seq, struct audit_stray_row *out)
{
	uint64_t first = CONSUME(audit_seq, &row->seq);

	out->seq = first;
	out->ip = row->ip;
	out->nr = row->nr;
	out->tgid = row->tgid;
	out->where = row->where;
	return CONSUME_AGAIN(audit_seq, &row->seq) == seq && first == seq;
}

int audit_stray(struct audit *a, struct audit_stray_row *out, int max)
{
	uint64_t ever = CONSUME(audit_strays, &a->skel->bss->strays);
	uint64_t want = ever < AUDIT_STRAYS ? ever : AUDIT_STRAYS;
	int got = 0;

	if (max < 0)
		return 0;
	if (want > (uint64_t)max)
		want = max;
	for (uint64_t seq = ever - want + 1; seq <= ever; seq++)
		if (read_stray(&a->skel->bss->stray[(seq - 1) % AUDIT_STRAYS],
			       seq, &out[got]))
			got++;
	return got;
}

void audit_close(struct audit *a)
{
	if (!a)
		return;
	if (a->skel)
		audit_bpf__destroy(a->skel);
	free(a->cpu);
	free(a);
}
