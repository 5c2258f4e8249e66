/*
 * mve status: what a session's calls were, and how each was held.
 */
#include <string.h>
#include <time.h>

#include "engine/mve/commands.h"
#include "engine/mve/show.h"
#include "engine/outside/control/control.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/print/plain.h"

static const char help[] =
	"usage: mve status NAME [--json]\n"
	"\n"
	"The versions, how far behind they are and whether they stand still; calls by\n"
	"name, class and tier; sites patched, trapped, and hot but not patched, with why;\n"
	"calls that mve does not know; what was refused. Spares, who joined as it ran,\n"
	"who was lost and why, and how long somebody stood still for a twin, an attach,\n"
	"a detach, a takeover or an image at most.\n";

/* The last programs: a sealed one needs no net, see docs/design/calls.md. */
static void images_show(const json_t *list)
{
	const json_t *im;
	size_t i;

	json_array_foreach(list, i, im)
		printf("  %-40s pid %lld, %s\n", show_text(im, "exe"), show_number(im, "pid"),
		       json_is_true(json_object_get(im, "sealed")) ? "sealed" : "under the net");
	putchar('\n');
}

static void verdicts_show(const json_t *verdicts)
{
	const char *name;
	const json_t *n;

	json_object_foreach((json_t *)verdicts, name, n)
		printf(", %lld %s", json_integer_value(n), name);
}

/* In bytes, and in time; one that reads nothing of it any more is said to stand. */
static void lag_show(const json_t *v)
{
	json_int_t ms = show_number(v, "lag_ms"), still = show_number(v, "still_ms");
	time_t since = (time_t)show_number(v, "still_since");
	char at[16] = "";

	printf(", %lld bytes", show_number(v, "lag_bytes"));
	if (ms)
		printf(" and %.1f s", (double)ms / 1000);
	printf(" behind");
	if (json_object_get(v, "own_kib"))
		printf(", %lld MiB of its own", show_number(v, "own_kib") >> 10);
	if (!still)
		return;
	strftime(at, sizeof(at), "%H:%M:%S", localtime(&since));
	printf(", stands still for %lld s (since %s)", still / 1000, at);
}

/* Whose threads wait, and who waits with them. */
static const struct waiter {
	const char *whose, *who, *with;
} waiters[] = {
	{ "leader", "the server", ", and clients with it" },
	{ "follower", "this follower", ", and no client with it" },
	{ "taker", "a takeover", ", and clients with it" },
};

/* A wait that came to its limit, and what was waited for (abi/waits.def). */
static void wait_show(const json_t *w)
{
	const struct waiter *who = waiters, *end = waiters + sizeof(waiters) / sizeof(*waiters);
	json_int_t met = show_number(w, "met");

	while (who < end && strcmp(show_text(w, "whose"), who->whose))
		who++;
	if (!met || who == end)
		return;
	printf("%20s %s waited in vain %lld time%s, %lld ms at most%s,\n"
	       "%20s for %s;\n%20s then %s\n", "", who->who, met, met == 1 ? "" : "s",
	       show_number(w, "longest_us") / 1000, who->with, "", show_text(w, "for"), "",
	       show_text(w, "then"));
}

static void waits_show(const json_t *list)
{
	const json_t *w;
	size_t i;

	json_array_foreach(list, i, w)
		wait_show(w);
}

/* Where it differed once, and not when that was tried again. */
static void races_show(const json_t *rewind)
{
	const json_t *race, *list = json_object_get(rewind, "races");
	size_t i;

	if (show_number(rewind, "rewinds"))
		printf("    went back to its image %lld time%s, for what it differed in here:\n",
		       show_number(rewind, "rewinds"),
		       show_number(rewind, "rewinds") == 1 ? "" : "s");
	json_array_foreach(list, i, race)
		printf("    %12lld  %s\n", show_number(race, "times"), show_text(race, "place"));
	if (show_number(rewind, "races_elsewhere"))
		printf("    %12lld  elsewhere\n", show_number(rewind, "races_elsewhere"));
}

/* One that differed has been replaced by a twin. */
static void retry_show(const json_t *r)
{
	if (!show_number(r, "times") && !*show_text(r, "why"))
		return;
	printf("    replaced by a twin %lld time%s%s; lost before: %s\n", show_number(r, "times"),
	       show_number(r, "times") == 1 ? "" : "s",
	       json_is_true(json_object_get(r, "comes")) ? ", and soon again" : "",
	       show_text(r, "why"));
}

/* Of mve run --rollback. */
static void rollbacks_show(const json_t *list)
{
	const json_t *v, *r;
	size_t i;

	json_array_foreach(list, i, v) {
		r = json_object_get(v, "rollback");
		if (show_number(r, "taken_back") || show_number(r, "not") ||
		    show_number(r, "refused"))
			printf("  %-16s %lld requests that failed were taken back, %lld were not; "
			       "%lld refused\n", show_text(v, "name"),
			       show_number(r, "taken_back"), show_number(r, "not"),
			       show_number(r, "refused"));
	}
}

/* Leader and followers, when there are any. */
static void versions_show(const json_t *list, const json_t *ring)
{
	const json_t *spill = json_object_get(ring, "spill");
	const json_t *v;
	size_t i;

	if (!ring)
		return;
	json_array_foreach(list, i, v) {
		printf("  %-16s %-9s ", show_text(v, "name"), show_text(v, "role"));
		if (show_number(v, "pid"))	/* 0: none is left */
			printf("pid %lld, ", show_number(v, "pid"));
		printf("%lld calls", show_number(v, "calls"));
		if (show_number(v, "requests"))
			printf(", %lld requests", show_number(v, "requests"));
		if (!strcmp(show_text(v, "role"), "follower"))
			lag_show(v);
		verdicts_show(json_object_get(v, "verdicts"));
		if (show_number(v, "findings"))
			printf(", findings: %lld, seen %lld time%s", show_number(v, "findings"),
			       show_number(v, "findings_all"),
			       show_number(v, "findings_all") == 1 ? "" : "s");
		printf("%s%s\n", *show_text(v, "why") ? ": " : "", show_text(v, "why"));
		waits_show(json_object_get(v, "waits"));
		races_show(json_object_get(v, "rewind"));
		retry_show(json_object_get(v, "retry"));
	}
	printf("  ring of %lld MiB, when full: %s; waited %lld times",
	       show_number(ring, "bytes") >> 20, show_text(ring, "when_full"),
	       show_number(ring, "waits"));
	if (spill)
		printf("; %lld MiB on disk (%s, %lld at most), written in all: %lld MiB",
		       show_number(spill, "on_disk") >> 20, show_text(spill, "folder"),
		       show_number(spill, "most") >> 20, show_number(spill, "written") >> 20);
	if (json_object_get(ring, "no_spill"))
		printf("; nothing is spilled to disk: %s", show_text(ring, "no_spill"));
	printf("\n\n");
}

/* Twins that are kept, and what they cost the leader. */
static void recording_show(const json_t *r)
{
	if (!r)
		return;
	printf("  recording to %s: %lld MiB (%lld as they are) in %lld segments",
	       show_text(r, "folder"), show_number(r, "bytes") >> 20,
	       show_number(r, "uncompressed") >> 20, show_number(r, "segments"));
	if (show_number(r, "dropped"))
		printf(", %lld older ones were dropped", show_number(r, "dropped"));
	if (json_object_get(r, "ended"))
		printf("; it has ended: %s", show_text(r, "ended"));
	putchar('\n');
}

static void spares_show(const json_t *s)
{
	const char *why = show_text(s, "why");

	if (s)
		printf("  spares: %lld of %lld; %lld made, for which the server stood for %lld us "
		       "at most; %lld lost%s%s\n\n", show_number(s, "there"),
		       show_number(s, "wanted"), show_number(s, "made"),
		       show_number(s, "stood_us_most"), show_number(s, "lost"),
		       *why ? ": " : "", why);
}

static void pauses_show(const json_t *list)
{
	const json_t *p;
	size_t i;

	json_array_foreach(list, i, p)
		if (show_number(p, "times"))
			printf("  %s stood %lld time%s %s: %.1f ms at most\n", show_text(p, "who"),
			       show_number(p, "times"), show_number(p, "times") == 1 ? "" : "s",
			       show_text(p, "for"), (double)show_number(p, "longest_us") / 1000);
}

/* Who stood still for what, who came as it ran, and who was lost. */
static void past_show(const json_t *j)
{
	const json_t *l, *losses = json_object_get(j, "losses");
	char at[16];
	time_t when;
	size_t i;

	pauses_show(json_object_get(j, "pauses"));
	if (show_number(j, "joins") || show_number(j, "lost"))
		printf("  %lld joined late, %lld lost%s\n", show_number(j, "joins"),
		       show_number(j, "lost"), json_array_size(losses) ? ":" : "");
	json_array_foreach(losses, i, l) {
		when = (time_t)show_number(l, "time");
		strftime(at, sizeof(at), "%H:%M:%S", localtime(&when));
		printf("    %s  %s: %s\n", at, show_text(l, "name"), show_text(l, "why"));
	}
}

/* Of a live update. */
static void update_show(const json_t *u)
{
	const char *stage = show_text(u, "stage"), *why = show_text(u, "why");
	const char *past = show_text(u, "past");

	if (!u)
		return;
	printf("  update: %s", stage);
	if (json_is_true(json_object_get(u, "busy")))
		printf(", for %lld s, to %s", show_number(u, "seconds"), show_text(u, "to"));
	else
		printf(", %s runs", show_text(u, "build"));
	if (show_number(u, "stood_us"))
		printf("; the server stood for %.1f ms", (double)show_number(u, "stood_us") / 1000);
	if (*why)
		printf("; the last one: %s%s%s", past, *past ? ": " : "", why);
	printf("\n\n");
}

/* What goes to another machine, and what waits for that. */
static void ship_show(const json_t *s)
{
	const char *state = show_text(s, "state"), *words = show_text(s, "words");

	if (s)
		printf("  ships to %s: %s%s%s; %lld bytes there, %lld waiting\n\n",
		       show_text(s, "to"), state, !strcmp(state, words) ? "" : ": ",
		       !strcmp(state, words) ? "" : words, show_number(s, "shipped"),
		       show_number(s, "waiting"));
}

/* What share of the traffic the followers have seen. */
static void sample_show(const json_t *s)
{
	long long all = show_number(s, "connections");
	long long seen = show_number(s, "connections_followed");

	if (s)
		printf("  sample %s: %lld of %lld connections followed (%.2f %%), "
		       "%lld of %lld calls\n\n", show_text(s, "how"), seen, all,
		       all ? 100.0 * (double)seen / (double)all : 0.0,
		       show_number(s, "calls_followed"), show_number(s, "calls"));
}

static void calls_show(const json_t *calls)
{
	const json_t *row, *by_name = json_object_get(calls, "by_name");
	size_t i;

	printf("%lld calls: %lld patched, %lld trapped (%.4f %%), %lld unknown\n",
	       show_number(calls, "total"), show_number(calls, "patch"), show_number(calls, "trap"),
	       100 * json_real_value(json_object_get(calls, "trap_share")),
	       show_number(calls, "unknown"));
	printf("\n  %-24s %-8s %16s %12s\n", "call", "class", "patched", "trapped");
	json_array_foreach(by_name, i, row)
		printf("  %-24s %-8s %16lld %12lld\n", show_text(row, "name"),
		       show_text(row, "class"), show_number(row, "patch"),
		       show_number(row, "trap"));
}

static void places_show(const json_t *list, const char *title)
{
	const json_t *row;
	size_t i;

	if (json_array_size(list))
		printf("  %s:\n", title);
	json_array_foreach(list, i, row)
		printf("    %12lld  %s\n%18s%s\n", show_number(row, "calls"),
		       show_text(row, "place"), "", show_text(row, "why"));
}

static void sites_show(const json_t *sites)
{
	printf("\nsites: %lld patched, %lld left to the net, %lld seen trapping\n",
	       show_number(sites, "patched"), show_number(sites, "left_to_the_net"),
	       show_number(sites, "trapped"));
	places_show(json_object_get(sites, "hot_unpatched"), "hot but not patched");
	places_show(json_object_get(sites, "seen_trapped"), "trapped now and then");
}

static void refused_show(const json_t *refused)
{
	const char *key;
	const json_t *n;

	json_object_foreach((json_t *)refused, key, n)
		if (json_integer_value(n))
			printf("refused: %s: %lld\n", key, json_integer_value(n));
}

int cmd_status(int argc, char **argv)
{
	struct look l = look_take(argc, argv, "nj", help);
	struct session s;
	json_t *j;
	int code = l.code ? l.code : look_session(&l, &s);

	if (code)
		return code;
	j = control_ask(&s, "status");
	if (!j) {
		say_error("try again; mve ps shows whether it is there",
			  "the monitor does not answer: %s", l.name);
		return EXIT_SYSTEM;
	}
	show_add_own(j);
	if (l.json)
		return show_json(j);
	plain_json(j, false);
	printf("%s: %s, server %lld, monitor %lld, tier %s, %lld s, %lld thread%s\n",
	       show_text(j, "name"), show_text(j, "state"), show_number(j, "server"),
	       show_number(j, "monitor"), show_text(j, "tier"), show_number(j, "seconds"),
	       show_number(j, "threads"), show_number(j, "threads") == 1 ? "" : "s");
	printf("programs started: %lld held, %lld unheld\n", show_number(j, "programs"),
	       show_number(j, "unheld"));
	versions_show(json_object_get(j, "versions"), json_object_get(j, "ring"));
	rollbacks_show(json_object_get(j, "versions"));
	spares_show(json_object_get(j, "spares"));
	update_show(json_object_get(j, "update"));
	past_show(j);
	sample_show(json_object_get(j, "sample"));
	recording_show(json_object_get(j, "recording"));
	ship_show(json_object_get(j, "ship"));
	images_show(json_object_get(j, "images"));
	calls_show(json_object_get(j, "calls"));
	sites_show(json_object_get(j, "sites"));
	refused_show(json_object_get(j, "refused"));
	json_decref(j);
	return EXIT_OK;
}
