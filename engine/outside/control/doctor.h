/*
 * What the machine must offer, one check each: doctor.c has the table,
 * doctor_probe.c the probes.
 */
#ifndef MVE_OUTSIDE_DOCTOR_H
#define MVE_OUTSIDE_DOCTOR_H

#include <stdbool.h>

#define DOCTOR_DETAIL	200

/* What a probe found: one line for people, in either case. */
struct doctor_finding {
	bool ok;
	char detail[DOCTOR_DETAIL];
};

struct doctor_check {
	const char *name;
	bool required;
	const char *lost;	/* without it, this does not work */
	const char *remedy;
	bool (*probe)(struct doctor_finding *f);
};

extern const struct doctor_check doctor_checks[];
extern const int doctor_checks_count;

/*
 * Runs one check in a child of its own, for a few seconds at most: a probe
 * that dies or hangs is "not ok" and nothing else.
 */
void doctor_run(const struct doctor_check *check, struct doctor_finding *f);

/* Each: true when it is there; detail is filled in either case. */
bool probe_machine(struct doctor_finding *f);
bool probe_fsgsbase(struct doctor_finding *f);
bool probe_dispatch(struct doctor_finding *f);
bool probe_ptrace(struct doctor_finding *f);
bool probe_vm_writev(struct doctor_finding *f);
bool probe_proc_mem(struct doctor_finding *f);
bool probe_pidfd_open(struct doctor_finding *f);
bool probe_pidfd_getfd(struct doctor_finding *f);
bool probe_memfd(struct doctor_finding *f);
bool probe_robust(struct doctor_finding *f);
bool probe_folder(struct doctor_finding *f);
bool probe_nofile(struct doctor_finding *f);
bool probe_memlock(struct doctor_finding *f);
bool probe_overcommit(struct doctor_finding *f);
bool probe_cgroup(struct doctor_finding *f);
bool probe_min_addr(struct doctor_finding *f);
bool probe_waking(struct doctor_finding *f);
bool probe_userfaultfd(struct doctor_finding *f);
bool probe_seccomp(struct doctor_finding *f);
bool probe_mm_map(struct doctor_finding *f);
bool probe_bpf_rights(struct doctor_finding *f);
bool probe_btf(struct doctor_finding *f);
bool probe_audit(struct doctor_finding *f);

#endif
