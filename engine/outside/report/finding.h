/*
 * Findings: what a sanitizer in a follower has reported.  A finding is a report
 * (report.h) with the verdict "found", which has the sanitizer's words and the request
 * that led to it besides.
 */
#ifndef MVE_OUTSIDE_FINDING_H
#define MVE_OUTSIDE_FINDING_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/abi/area.h"

/* What a connection has sent, as the follower took it. */
struct finding_request {
	int32_t fd;		/* the leader's number of the connection; -1: none is known */
	bool whole;		/* from its first byte to the last that was read */
	bool others;		/* read by another thread, or by the parent */
	uint8_t *bytes;		/* free() it */
	size_t len;
};

/*
 * finding_request.c: of the connection that the thread read last, or else its process,
 * or else that one's parent, which may have read it before a fork.
 */
void finding_request_read(const struct area *a, pid_t pid, pid_t tid, struct finding_request *r);
/* As a report has it; its text is cut at the beginning, where it is long. */
json_t *finding_request_json(const struct finding_request *r);

/* finding_read.c: the reports in what a runtime has written, each as JSON, in an array. */
json_t *finding_read(const char *text);
/* Equal for equal findings: of the same kind, with the same frames. */
uint64_t finding_key(const json_t *finding);
/* Looked for when the process ends: no request led to it then. */
bool finding_is_leak(const json_t *finding);
/* "heap-buffer-overflow in hex_byte at request.c:12" */
void finding_summary(const json_t *finding, char *text, size_t size);

#endif
