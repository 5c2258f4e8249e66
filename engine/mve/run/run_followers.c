/*
 * Followers on the command line of mve run.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/mve/run/run_followers.h"
#include "engine/mve/words.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/session/session.h"
#include "engine/outside/rules/rules_load.h"

int follower_add(struct run_options *o, const char *command)
{
	struct follower_options *f = &o->follower[o->followers];

	if (o->followers == FOLLOWERS_MAX) {
		say_error("start a second session for more", "too many followers: at most %d",
			  FOLLOWERS_MAX);
		return EXIT_USE;
	}
	f->command = command;
	f->argv = words_split(command);
	if (!f->argv) {
		say_error("for example: -f './server --port 80' or -f same",
			  "not a command (empty, or a quote without its end): %s", command);
		return EXIT_USE;
	}
	o->followers++;
	return 0;
}

/* The follower that an option is about; NULL after a message. */
static struct follower_options *last(struct run_options *o, const char *option)
{
	if (o->followers)
		return &o->follower[o->followers - 1];
	say_error("for example: -f same --strict", "option without a follower before it: --%s",
		  option);
	return NULL;
}

int follower_name(struct run_options *o, const char *name)
{
	if (!session_name_ok(name) || strlen(name) > FOLLOWER_NAME_MAX) {
		say_error("up to 32 letters, digits and . _ - , not . or - first",
			  "not a follower's name: '%s'", name);
		return EXIT_USE;
	}
	last(o, "name")->name = name;
	return 0;
}

int follower_strict(struct run_options *o)
{
	struct follower_options *f = last(o, "strict");

	if (f)
		f->strict = true;
	return f ? 0 : EXIT_USE;
}

int follower_again(struct run_options *o)
{
	struct follower_options *f = last(o, "again");

	if (f)
		f->again = true;
	return f ? 0 : EXIT_USE;
}

/* retry:TIMES/MS; what stands behind the colon. */
static bool retry_take(struct follower_options *f, const char *text)
{
	char *end;
	unsigned long ms, times = strtoul(text, &end, 10);

	if (*text < '1' || *text > '9' || times > RETRY_TIMES_MOST || (*end && *end != '/'))
		return false;
	f->retry_times = (uint32_t)times;
	if (!*end)
		return true;
	text = end + 1;
	ms = strtoul(text, &end, 10);
	f->retry_ms = (uint32_t)ms;
	return *text >= '1' && *text <= '9' && !*end && ms <= RETRY_MS_MOST;
}

/* What a policy's word may have behind it; true: it is that policy. */
static bool policy_is(struct follower_options *f, enum policy policy, const char *word,
		      const char *text)
{
	size_t n = strlen(word);

	if (policy == POLICY_ALARM)
		return !strncmp(text, word, n) && text[n];
	if (policy == POLICY_RETRY && !strncmp(text, word, n) && text[n] == ':')
		return retry_take(f, text + n + 1);
	return !strcmp(text, word);
}

int follower_policy(struct run_options *o, const char *text)
{
	static const char *const words[] = { [POLICY_STOP] = "stop", [POLICY_IGNORE] = "ignore",
					     [POLICY_ALARM] = "alarm:",
					     [POLICY_PROMOTE] = "promote",
					     [POLICY_RETRY] = "retry" };
	struct follower_options *f = last(o, "on-divergence");

	if (!f)
		return EXIT_USE;
	for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (!policy_is(f, (enum policy)i, words[i], text))
			continue;
		f->policy = (enum policy)i;
		f->alarm = i == POLICY_ALARM ? text + strlen(words[i]) : NULL;
		return 0;
	}
	say_error("stop, ignore, alarm:CMD, promote or retry[:TIMES[/MS]]",
		  "not a value of --on-divergence: %s", text);
	return EXIT_USE;
}

int follower_on_finding(struct run_options *o, const char *command)
{
	struct follower_options *f = last(o, "on-finding");

	if (!f)
		return EXIT_USE;
	if (!*command) {
		say_error("for example: --on-finding 'mail -s found me <$MVE_REPORT'",
			  "no command for --on-finding");
		return EXIT_USE;
	}
	f->on_finding = command;
	return 0;
}

int follower_rules(struct run_options *o, const char *path)
{
	struct follower_options *f = last(o, "rules");

	if (!f)
		return EXIT_USE;
	if (access(path, R_OK) < 0) {
		say_error("check its path and its rights", "cannot read the rules: %s: %s", path,
			  strerror(errno));
		return EXIT_USE;
	}
	if (f->rules) {
		say_error("one file names others by `use`", "a follower has one file of rules: %s",
			  path);
		return EXIT_USE;
	}
	f->rules = path;
	return 0;
}

int follower_older(struct run_options *o)
{
	struct follower_options *f = last(o, "older");

	if (f)
		f->older = true;
	return f ? 0 : EXIT_USE;
}

int follower_release(struct run_options *o, const char *name)
{
	if (!*name || strlen(name) > RELEASE_MAX) {
		say_error("as rules write it behind @leader and @follower",
			  "not a release (1 to %d letters): '%s'", RELEASE_MAX, name);
		return EXIT_USE;
	}
	if (o->followers)
		last(o, "release")->release = name;
	else
		o->release = name;
	return 0;
}

/* Before anything starts; 0 or an exit code. */
static int rules_make(struct follower_options *f)
{
	const char *why;
	int object, code = f->rules ? rules_compile(f->rules, &object) : 0;

	if (code || !f->rules)
		return code;
	f->rules_bank = rules_read(object, &why);
	close(object);
	if (!f->rules_bank)
		say_error("compile it anew with rulec build", "the rules cannot be used: %s: %s",
			  f->rules, why);
	return f->rules_bank ? 0 : EXIT_NO;
}

int follower_map(struct run_options *o, char *text)
{
	struct follower_options *f = last(o, "map");
	char *to = strchr(text, '=');
	size_t most = sizeof(((struct path_map *)0)->from) - 1;

	if (!f)
		return EXIT_USE;
	if (!to || to == text || !to[1]) {
		say_error("for example: --map /opt/old=/opt/new", "not a pair of paths: %s", text);
		return EXIT_USE;
	}
	if ((size_t)(to - text) > most || strlen(to + 1) > most) {
		say_error("give a common beginning",
				  "--map: a path of more than %zu characters: %s",
			  most, text);
		return EXIT_USE;
	}
	if (f->maps == PATH_MAPS) {
		say_error("give a common beginning", "too many --map for one follower: at most %d",
			  PATH_MAPS);
		return EXIT_USE;
	}
	*to = 0;
	f->map_from[f->maps] = text;
	f->map_to[f->maps++] = to + 1;
	return 0;
}

/* What comes in its place is a copy of the leader; what takes the leader's needs one. */
static int policy_complete(const struct run_options *o, const struct follower_options *f)
{
	const char *why = o->replay ? "a recording has no leader to copy" :
			  o->sampling.stateless ? "--again is the like with --stateless" :
			  strcmp(f->command, "same") ? "only -f same can be replaced by one" : NULL;

	if (f->policy == POLICY_PROMOTE && o->replay) {
		say_error("stop, ignore or alarm:CMD",
			  "--on-divergence promote: a recording leads nobody");
		return EXIT_USE;
	}
	if (f->policy != POLICY_RETRY || !why)
		return 0;
	say_error(why, "--on-divergence retry: a twin of the leader cannot replace it: -f '%s'",
		  f->command);
	return EXIT_USE;
}

static bool name_taken(const struct run_options *o, const char *name, unsigned before)
{
	if (!strcmp(name, "v0"))
		return true;
	for (unsigned i = 0; i < before; i++)
		if (o->follower[i].name && !strcmp(o->follower[i].name, name))
			return true;
	return false;
}

/* They are twins, which a session of one kind has, and rows of which there are so many. */
static int spares_complete(const struct run_options *o)
{
	/* A row is the leader's, and one the next twin's. */
	unsigned most = options_versions(o) - 2;

	if (o->spares && o->sampling.stateless) {
		say_error("with --stateless, -f same --again is one that comes again",
			  "--spare with --stateless: a spare knows all connections");
		return EXIT_USE;
	}
	if (o->spares && o->spares + o->followers > most) {
		say_error("take fewer",
			  "too many versions: %u with -f, and --spare %u: at most %u%s",
			  o->followers, o->spares, most, o->record ? " with --record" : "");
		return EXIT_USE;
	}
	return 0;
}

int followers_complete(struct run_options *o)
{
	static char made[FOLLOWERS_MAX][8];
	int result = spares_complete(o);

	if (result)
		return result;

	for (unsigned i = 0; i < o->followers; i++) {
		struct follower_options *f = &o->follower[i];

		if (!strcmp(f->command, "same"))
			f->argv = o->argv;
		if (!f->name) {
			snprintf(made[i], sizeof(made[i]), "f%u", i + 1);
			f->name = made[i];
		}
		if (name_taken(o, f->name, i)) {
			say_error("each has its own; v0 is the leader's",
				  "the name is used twice: %s", f->name);
			return EXIT_USE;
		}
	}
	for (unsigned i = 0; i < o->followers; i++) {
		int code = policy_complete(o, &o->follower[i]);

		code = code ? code : rules_make(&o->follower[i]);
		if (code)
			return code;
	}
	return 0;
}
