/*
 * Comparing two counts of a running thing.  The inside counts a call when it is
 * done, the kernel when it begins; so the inside is summed before and after the
 * kernel is, and each thread may have one call under way.  Within these bounds
 * the counts must agree, call by call.  The session's own command is counted, not
 * its followers.
 */
#include "engine/abi/table.h"
#include "engine/core/must.h"
#include "engine/outside/kernel/witness.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/monitor/status.h"
#include "engine/outside/monitor/versions.h"
#include "engine/outside/start/image.h"

#define RESTART_SLOT	(219 + 1)	/* restart_syscall */

_Static_assert(SLOT_CALLS <= AUDIT_SLOTS, "the kernel's counts have a row for each of ours");
_Static_assert(AUDIT_SPANS == 3, "gate, net and own: witness_ranges fills each");

typedef uint64_t counts[COUNT_ROWS][SLOT_CALLS];

static counts at_begin;		/* the inside's, when the witness came */
static bool from_now;		/* it came later than the server */

void witness_ranges(uint64_t base, struct audit_ranges *r)
{
	const struct inside_image *im = inside_image();

	*r = (struct audit_ranges){ 0 };
	r->span[AUDIT_GATE] = (struct audit_span){ base + im->patch_from, base + im->patch_to };
	r->span[AUDIT_NET] = (struct audit_span){ base + im->net_from, base + im->net_to };
	r->span[AUDIT_OWN] = (struct audit_span){ base + im->own_from, base + im->own_to };
}

json_t *witness_begin(struct monitor *m)
{
	const struct version *v = &m->version[0];
	uint32_t high = version_slots(v);

	MUST(!m->audit);
	m->audit = audit_open();
	if (!m->audit)
		return json_pack("{s:s}", "error", audit_why());
	from_now = true;
	for (uint32_t i = 0; i < high; i++) {
		const struct slot *s = &v->area->slot[i];
		struct audit_ranges r;

		witness_ranges(v->image[s->image % AREA_IMAGES].inside, &r);
		pid_t pid = s->pid, tid = (pid_t)s->owner;

		if (tid > 0 && version_owns(v, pid, tid))
			audit_add(m->audit, pid, &r);
	}
	status_sum(v, at_begin);
	return json_pack("{s:b}", "from_now", 1);
}

/* What the kernel must have seen from the gate, by the inside's counts. */
static int64_t expected(counts c, int slot)
{
	MUST(slot >= 0 && slot < SLOT_CALLS);
	return (int64_t)(c[TIER_PATCH][slot] + c[TIER_NET][slot] - c[COUNT_ANSWERED][slot]);
}

struct comparison {
	counts low, high;	/* the inside's, before and after the kernel's */
	struct audit_counts kernel;
	int64_t under_way;
	bool filters;		/* the program has seccomp filters: they stop calls */
};

static json_t *row_json(struct comparison *c, int slot)
{
	const struct call_desc *d = slot ? call_find(slot - 1) : NULL;
	const struct audit_counts *k = &c->kernel;
	int64_t begin = expected(at_begin, slot);
	int64_t low = expected(c->low, slot) - begin, high = expected(c->high, slot) - begin;
	int64_t gate = (int64_t)k->n[AUDIT_GATE][slot], net = (int64_t)k->n[AUDIT_NET][slot];
	int64_t again = (int64_t)k->n[AUDIT_AGAIN][slot];
	/* The net makes a call through the vsyscall page anew: one of each. */
	int64_t old_page = (int64_t)k->n[AUDIT_VSYSCALL][slot];
	int64_t stray = (int64_t)k->n[AUDIT_ELSEWHERE][slot] +
			(old_page > net ? old_page - net : 0);
	int64_t answered = (int64_t)(c->high[COUNT_ANSWERED][slot] -
				     at_begin[COUNT_ANSWERED][slot]);
	bool enough = c->filters || gate + net >= low - (from_now ? c->under_way : 0);
	bool restarted = slot == RESTART_SLOT;	/* the kernel's own way to go on */
	bool agree = !stray && enough && (restarted || gate + net <= high + again + c->under_way);

	if (!(high | gate | net | stray | answered))
		return NULL;
	return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:b}", "name",
			 d ? d->name : "unknown", "gate", gate, "net", net, "elsewhere", stray,
			 "again", again, "answered",
			 answered, "inside", high + answered, "agree", agree);
}

/* The last calls that came from elsewhere, to find out where. */
static json_t *strays_json(struct monitor *m)
{
	struct audit_stray_row row[AUDIT_STRAYS];
	int n = audit_stray(m->audit, row, AUDIT_STRAYS);
	json_t *list = json_array();

	for (int i = 0; i < n; i++) {
		const struct call_desc *d = call_find((long)row[i].nr);
		char place[32];

		if (row[i].where != AUDIT_ELSEWHERE)
			continue;
		snprintf(place, sizeof(place), "0x%llx", row[i].ip);
		json_array_append_new(list, json_pack("{s:s, s:s, s:i}", "name",
						      d ? d->name : "unknown", "address", place,
						      "pid", (int)row[i].tgid));
	}
	return list;
}

json_t *witness_json(struct monitor *m)
{
	static struct comparison c;
	const uint64_t *total = c.kernel.total;
	const struct version *v = &m->version[0];
	json_t *rows = json_array();
	bool agree = true;
	json_int_t inside = 0;

	c.under_way = status_threads(v);
	c.filters = v->area->filters != 0;
	status_sum(v, c.low);
	if (!m->audit || audit_read(m->audit, &c.kernel)) {
		json_decref(rows);
		return json_pack("{s:s}", "error", "the witness cannot be read");
	}
	status_sum(v, c.high);
	for (int slot = 0; slot < SLOT_CALLS; slot++) {
		json_t *row = row_json(&c, slot);

		if (!row)
			continue;
		agree &= json_is_true(json_object_get(row, "agree"));
		inside += json_integer_value(json_object_get(row, "inside"));
		json_array_append_new(rows, row);
	}
	return json_pack("{s:b, s:b, s:I, s:I, s:I, s:I, s:I, s:o, s:I, s:I, s:o}", "from_now",
			 from_now, "agree", agree && !total[AUDIT_COMPAT], "gate",
			 (json_int_t)total[AUDIT_GATE], "net", (json_int_t)total[AUDIT_NET], "own",
			 (json_int_t)total[AUDIT_OWN], "before", (json_int_t)total[AUDIT_BEFORE],
			 "elsewhere",
			 (json_int_t)total[AUDIT_ELSEWHERE], "strays", strays_json(m), "compat",
			 (json_int_t)total[AUDIT_COMPAT], "inside", inside, "by_name", rows);
}
