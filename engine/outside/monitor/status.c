/*
 * What a session has done, as JSON: the one source of what `mve status` and
 * `mve audit` show.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/abi/table.h"
#include "engine/core/away.h"
#include "engine/core/must.h"
#include "engine/outside/follow/pace.h"
#include "engine/outside/late/past.h"
#include "engine/outside/late/retry.h"
#include "engine/outside/late/rows.h"
#include "engine/outside/late/spares.h"
#include "engine/outside/kernel/maps.h"
#include "engine/outside/kernel/witness.h"
#include "engine/outside/record/recorder.h"
#include "engine/outside/log/stand.h"
#include "engine/outside/ship/ship.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/status.h"
#include "engine/outside/monitor/streams.h"
#include "engine/outside/monitor/versions.h"
#include "engine/outside/rewind/rewind.h"
#include "engine/outside/patch/patch.h"
#include "engine/outside/print/text_json.h"
#include "engine/outside/report/report.h"
#include "engine/outside/spill/spill.h"
#include "engine/outside/stages/stages.h"
#include "engine/outside/takeover/takeover.h"

#define HOT_SITE	1000	/* trapped calls that make a site worth a word */
#define SITES_SHOWN	20	/* the hottest */

void status_sum(const struct version *v, uint64_t sum[COUNT_ROWS][SLOT_CALLS])
{
	uint32_t high = v->area->slots_high < AREA_THREADS ? v->area->slots_high : AREA_THREADS;

	memset(sum, 0, sizeof(uint64_t) * COUNT_ROWS * SLOT_CALLS);
	for (uint32_t i = 0; i < high; i++)
		for (int tier = 0; tier < COUNT_ROWS; tier++)
			for (int c = 0; c < SLOT_CALLS; c++)
				sum[tier][c] += v->area->slot[i].counts[tier][c];
}

static json_t *call_row(int slot, uint64_t patch, uint64_t trap)
{
	MUST(slot >= 0 && slot < SLOT_CALLS);
	const struct call_desc *d = slot ? call_find(slot - 1) : NULL;

	return json_pack("{s:s, s:i, s:s, s:I, s:I}", "name", d ? d->name : "unknown", "number",
			 slot - 1, "class", d ? class_name(d->class) : "unknown", "patch",
			 (json_int_t)patch, "trap", (json_int_t)trap);
}

static json_t *calls_json(const struct version *v)
{
	static uint64_t sum[COUNT_ROWS][SLOT_CALLS];
	uint64_t patch = 0, trap = 0;
	json_t *by_name = json_array();

	status_sum(v, sum);
	for (int c = 0; c < SLOT_CALLS; c++) {
		patch += sum[TIER_PATCH][c];
		trap += sum[TIER_NET][c];
		if (sum[TIER_PATCH][c] + sum[TIER_NET][c])
			json_array_append_new(by_name, call_row(c, sum[TIER_PATCH][c],
								sum[TIER_NET][c]));
	}
	return json_pack("{s:I, s:I, s:I, s:f, s:I, s:o}", "total", (json_int_t)(patch + trap),
			 "patch", (json_int_t)patch, "trap", (json_int_t)trap, "trap_share",
			 patch + trap ? (double)trap / (double)(patch + trap) : 0.0, "unknown",
			 (json_int_t)(sum[TIER_PATCH][0] + sum[TIER_NET][0]), "by_name", by_name);
}

static int site_heat(const void *a, const void *b)
{
	uint32_t x = ((const struct site_row *)a)->count, y = ((const struct site_row *)b)->count;

	return x < y ? 1 : x > y ? -1 : 0;
}

/*
 * Names the file and offset of an address while its process lives, and why it is not
 * patched.
 */
static json_t *site_row_json(const struct version *v, const struct site_row *s)
{
	pid_t pid = v->image[s->image % AREA_IMAGES].pid;
	const char *why = "its process has ended";
	struct maps maps;
	char place[400];

	snprintf(place, sizeof(place), "0x%lx", s->address);
	if (maps_read(pid, &maps))
		maps.n = 0;
	else
		why = "its code is mapped no more";
	for (size_t i = 0; i < maps.n; i++) {
		const struct map *at = &maps.map[i];

		if (s->address < at->start || s->address >= at->end)
			continue;
		snprintf(place, sizeof(place), "%s+0x%lx", at->path[0] ? at->path : "[anonymous]",
			 at->offset + s->address - at->start);
		why = v->monitor->options->tier == TIER_NET ?
			      "the session patches nothing (--tier=trap)" :
			      patch_why_not(pid, at, s->address);
	}
	maps_free(&maps);
	return json_pack("{s:o, s:I, s:s}", "place", text_json(place), "calls",
			 (json_int_t)s->count, "why", why);
}

static json_t *sites_json(const struct version *v)
{
	static struct site_row row[AREA_SITES];
	uint32_t images = v->images, first = images > AREA_IMAGES ? images - AREA_IMAGES : 0;
	json_int_t patched = 0, left = 0, trapped = 0;
	json_t *hot = json_array(), *seen = json_array();

	for (uint32_t i = first; i < images; i++) {
		patched += v->image[i % AREA_IMAGES].sites_patched;
		left += v->image[i % AREA_IMAGES].sites_trapped;
	}
	memcpy(row, v->area->site, sizeof(row));
	qsort(row, AREA_SITES, sizeof(row[0]), site_heat);
	for (int i = 0; i < AREA_SITES && row[i].count; i++, trapped++) {
		if (i < SITES_SHOWN)
			json_array_append_new(row[i].count >= HOT_SITE ? hot : seen,
					      site_row_json(v, &row[i]));
	}
	return json_pack("{s:I, s:I, s:I, s:o, s:o}", "patched", patched, "left_to_the_net", left,
			 "trapped", trapped, "hot_unpatched", hot, "seen_trapped", seen);
}

static json_t *images_json(const struct version *v)
{
	uint32_t images = v->images, first = images > 16 ? images - 16 : 0;
	json_t *list = json_array();

	for (uint32_t i = first; i < images; i++) {
		const struct image *im = &v->image[i % AREA_IMAGES];
		bool sealed = im->sealed && !v->area->unsealed[i % AREA_IMAGES];
		char exe[sizeof(im->exe) + 1];

		memcpy(exe, im->exe, sizeof(im->exe));
		exe[sizeof(im->exe)] = 0;
		json_array_append_new(list, json_pack("{s:i, s:s, s:i, s:i, s:b}", "pid", im->pid,
						      "exe", exe, "patched", im->sites_patched,
						      "left", im->sites_trapped, "sealed",
						      sealed));
	}
	return list;
}

static json_t *refused_json(const struct version *v)
{
	static const char *const name[] = {
		[REFUSED_INT80] = "int80", [REFUSED_GS] = "gs_base",
		[REFUSED_IO_URING] = "io_uring", [REFUSED_DISPATCH] = "dispatch",
		[REFUSED_AIO] = "io_setup",
	};
	json_t *j = json_object();

	_Static_assert(sizeof(name) / sizeof(name[0]) == REFUSALS, "a name for each");

	for (unsigned i = 1; i < REFUSALS; i++)
		json_object_set_new(j, name[i], json_integer((json_int_t)v->area->refused[i]));
	return j;
}

int status_threads(const struct version *v)
{
	uint32_t high = v->area->slots_high < AREA_THREADS ? v->area->slots_high : AREA_THREADS;
	int n = 0;

	for (uint32_t i = 0; i < high; i++) {
		const struct slot *s = &v->area->slot[i];
		char name[64];

		if (!s->owner)
			continue;
		snprintf(name, sizeof(name), "/proc/%d/task/%u", s->pid, s->owner);
		n += access(name, F_OK) == 0;
	}
	return n;
}

static const char *role_name(const struct version *v)
{
	if (v->state == VERSION_ENDED)
		return "ended";
	if (!v->monitor->conduct)
		return "solo";
	if (v->index == v->monitor->leader)
		return "leader";
	if (v->join == JOIN_READS || v->join == JOIN_WAITS)
		return v->join == JOIN_READS ? "starting" : "joining";
	return v->state == VERSION_STARTING ? "starting" : "follower";
}

static json_t *verdicts_json(const struct version *v)
{
	json_t *j = json_object();

	for (unsigned i = 0; i < VERDICTS; i++)
		if (v->verdicts[i])
			json_object_set_new(j, verdict_name(i),
					    json_integer((json_int_t)v->verdicts[i]));
	return j;
}

/* How far behind in time, and since when it stands still, if it does. */
static void pace_add(json_t *j, const struct version *v)
{
	uint64_t still = pace_still_ms(v->monitor, &v->monitor->version[v->index]);
	json_int_t since = time(NULL) - (time_t)(still / 1000);

	json_object_set_new(j, "lag_ms", json_integer((json_int_t)pace_behind_ms(v->monitor, v)));
	json_object_set_new(j, "still_ms", json_integer((json_int_t)still));
	if (still)
		json_object_set_new(j, "still_since", json_integer(since));
}

/* How long its threads waited for each other: a row for each of abi/waits.def. */
static json_t *waits_json(const struct version *v)
{
	static const struct wait_name { const char *name, *whose, *what, *then; } names[] = {
#define LEADER "leader"
#define FOLLOWER "follower"
#define TAKER "taker"
#define WAIT(name, whose, limit, what, then) { #name, whose, what, then },
#include "engine/abi/waits.def"
#undef LEADER
#undef FOLLOWER
#undef TAKER
	};
	json_t *list = json_array();

	for (size_t i = 0; i < WAITS; i++) {
		const struct wait_name *n = &names[i];
		const struct wait_count *c = &v->area->wait[i];

		json_array_append_new(list, json_pack("{s:s, s:s, s:I, s:I, s:s, s:s}", "kind",
			n->name, "whose", n->whose, "met", (json_int_t)c->met, "longest_us",
			(json_int_t)(c->longest_ns / 1000), "for", n->what, "then", n->then));
	}
	return list;
}

static json_t *rollback_json(const struct version *v)
{
	return json_pack("{s:I, s:I, s:I}", "taken_back", (json_int_t)v->backs, "not",
			 (json_int_t)v->backs_not, "refused", (json_int_t)v->backs_known);
}

static json_t *version_json(const struct version *v)
{
	static uint64_t sum[COUNT_ROWS][SLOT_CALLS];
	uint64_t cells = 0, calls = 0, seams = 0;
	json_t *j, *retry;

	status_sum(v, sum);
	for (int c = 0; c < SLOT_CALLS; c++)
		calls += sum[TIER_PATCH][c] + sum[TIER_NET][c];
	for (uint32_t i = 0; i < version_slots(v); i++)
		seams += v->area->slot[i].seams;
	if (version_lives(v))
		streams_lag(v->monitor, v->index, &cells);
	/* One that goes back to its image has no process for a moment, and goes on. */
	j = json_pack("{s:s, s:s, s:i, s:b, s:i, s:I, s:I, s:I, s:I, s:o, s:I, s:I, s:o}",
		      "name", v->name, "role", role_name(v), "pid", (int)version_head(v),
		      "alive", version_alive(v) || rewind_is_on(v), "threads", status_threads(v),
		      "calls", (json_int_t)calls, "requests", (json_int_t)seams,
		      "lag_cells", (json_int_t)cells, "lag_bytes", (json_int_t)(cells * CELL_SIZE),
		      "verdicts", verdicts_json(v), "findings", (json_int_t)v->findings,
		      "findings_all", (json_int_t)v->findings_all, "why",
		      text_json(v->why));
	json_object_set_new(j, "argv", words_json(v->argv));
	json_object_set_new(j, "waits", waits_json(v));
	json_object_set_new(j, "locks_unordered",
			    json_integer((json_int_t)v->area->locks_unordered));
	if (v->monitor->options->rollback)
		json_object_set_new(j, "rollback", rollback_json(v));
	if (v->monitor->options->rewind && v->index)
		json_object_set_new(j, "rewind", rewind_json(v));
	retry = retry_json(v);
	if (retry)
		json_object_set_new(j, "retry", retry);
	if (version_lives(v) && v->index != v->monitor->leader)
		pace_add(j, v);
	return j;
}

static json_t *versions_json(struct monitor *m)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < m->versions; i++)
		if (!version_unused(&m->version[i]) && !m->version[i].asleep)
			json_array_append_new(list, version_json(&m->version[i]));
	return list;
}

/* What stands on disk, and what was ever written there. */
static json_t *spill_json(void)
{
	const struct spilled *s = spill_seen();

	if (!s)
		return NULL;
	return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I}", "folder", spill_folder(), "most",
			 (json_int_t)spill_chunks() * CHUNK_SIZE,
			 "on_disk", (json_int_t)s->out * CHUNK_SIZE,
			 "written", (json_int_t)s->written * CHUNK_SIZE, "read",
			 (json_int_t)s->read * CHUNK_SIZE, "memory",
			 (json_int_t)s->memory * CHUNK_SIZE, "memory_most",
			 (json_int_t)s->most * CHUNK_SIZE);
}

static json_t *ring_json(struct monitor *m)
{
	uint64_t waits = 0;
	int lanes = 0;

	MUST(m->realms && m->realms <= REALMS);

	for (uint32_t r = 0; r < m->realms; r++) {
		waits += realm_part(m, r, m->leader)->waits;
		lanes += (int)realm_part(m, r, m->leader)->lanes_high;
	}

	return json_pack("{s:I, s:s, s:s*, s:I, s:i, s:o*}", "bytes",
			 (json_int_t)chunks_in_memory(m->conduct) * CHUNK_SIZE, "when_full",
			 m->conduct->spills ? "spill" :
			 m->conduct->when_full == WHEN_FULL_BLOCK ? "block" : "drop",
			 "no_spill", spill_why_not(), "waits",
			 (json_int_t)waits, "lanes", lanes, "spill", spill_json());
}

/* What followers were told of, as the leader's threads have counted it. */
static json_t *sample_json(struct monitor *m)
{
	static const char *const names[] = { [SAMPLE_ALL] = "all", [SAMPLE_SHARE] = "share",
					     [SAMPLE_PEER] = "conn", [SAMPLE_WINDOW] = "window",
					     [SAMPLE_AUTO] = "auto" };
	_Static_assert(sizeof(names) / sizeof(names[0]) == SAMPLE_AUTO + 1, "each way");
	json_int_t conns = 0, kept = 0, calls = 0, calls_kept = 0;
	const struct version *v = leading(m);

	for (uint32_t i = 0; i < version_slots(v); i++) {
		conns += (json_int_t)v->area->slot[i].conns_told;
		kept += (json_int_t)v->area->slot[i].conns_kept;
		calls += (json_int_t)v->area->slot[i].calls_told;
		calls_kept += (json_int_t)v->area->slot[i].calls_kept;
	}
	return json_pack("{s:s, s:I, s:I, s:I, s:I}", "how", names[m->options->sampling.how],
			 "connections", conns + kept, "connections_followed", conns, "calls",
			 calls + calls_kept, "calls_followed", calls);
}

json_t *status_json(struct monitor *m)
{
	const struct session *s = &m->session;
	const struct version *v = leading(m);
	json_t *update = stages_json(m);
	json_t *j = json_pack("{s:s, s:s, s:i, s:i, s:s, s:o, s:o, s:I, s:i, s:i, s:i}", "name",
			      s->name, "state", "running", "monitor", getpid(), "server",
			      (int)s->server, "tier", s->tier, "command", text_json(s->command),
			      "argv", words_json(s->argv), "seconds",
			      (json_int_t)(time(NULL) - s->started), "threads", status_threads(v),
			      "programs", (int)v->images, "unheld",
			      (int)v->unheld);

	MUST(j);
	json_object_set_new(j, "calls", calls_json(v));
	json_object_set_new(j, "sites", sites_json(v));
	json_object_set_new(j, "refused", refused_json(v));
	json_object_set_new(j, "signals_held", json_integer((json_int_t)v->area->signals_held));
	json_object_set_new(j, "images", images_json(v));
	json_object_set_new(j, "versions", versions_json(m));
	if (m->conduct)
		json_object_set_new(j, "ring", ring_json(m));
	past_add(m, j);
	if (m->options->spares)
		json_object_set_new(j, "spares", spares_json(m));
	if (update)
		json_object_set_new(j, "update", update);
	if (takeover_any(m))
		json_object_set_new(j, "takeover",
				    json_pack("{s:b}", "active", takeover_switched(m)));
	if (m->options->sampling.stateless)
		json_object_set_new(j, "sample", sample_json(m));
	if (m->options->record)
		json_object_set_new(j, "recording", recorder_json(m));
	if (m->options->replay)
		json_object_set_new(j, "replay", stand_json(m));
	if (m->options->ship)
		json_object_set_new(j, "ship", ship_json());
	if (m->audit)
		json_object_set_new(j, "audit", witness_json(m));
	return j;
}
