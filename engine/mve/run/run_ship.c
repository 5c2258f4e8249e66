/*
 * mve run --ship: a recording that goes to another machine.  Without --record it stands in a
 * folder of the user's cache until it is there.
 */
#include <limits.h>
#include <stddef.h>

#include "engine/mve/run/run.h"
#include "engine/mve/run/run_ship.h"
#include "engine/mve/run/values.h"
#include "engine/outside/kernel/folder.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/ship/address.h"
#include "engine/outside/ship/courier.h"
#include "engine/outside/ship/ship.h"
#include "engine/outside/ship/spool.h"

static int spool_take(struct run_options *o, const char *text)
{
	int64_t n = size_take("spool", text, SPOOL_LEAST, SPOOL_MOST,
			      "bytes; or a number with K, M or G behind it");

	o->spool = n < 0 ? 0 : (uint64_t)n;
	return n < 0 ? EXIT_USE : 0;
}

int ship_take(struct run_options *o, int opt, const char *text)
{
	if (opt == OPT_SPOOL)
		return spool_take(o, text);
	*(opt == OPT_SHIP ? &o->ship : &o->from) = text;
	return 0;
}

int ship_complete(struct run_options *o)
{
	static char spool[PATH_MAX];
	struct ship_address address;
	const char *wrong = o->ship ? address_parse(&address, o->ship) : NULL;
	int result;

	if (o->spool && !o->ship) {
		say_error("it bounds what waits to be shipped", "--spool without --ship");
		return EXIT_USE;
	}
	if (!o->ship)
		return 0;
	if (wrong) {
		say_error("for example: --ship nats://localhost:4222/shop", "cannot ship: %s",
			  wrong);
		return EXIT_USE;
	}
	if (o->bounds.last) {
		say_error("what is dropped could not be shipped", "--ship and --keep last do not "
			  "go together");
		return EXIT_USE;
	}
	if (!courier_there())
		return EXIT_SYSTEM;
	o->spool = o->spool ? o->spool : SHIP_SPOOL;
	if (o->record)
		return 0;
	result = spool_name(spool, sizeof(spool));
	if (result)
		say_error("XDG_CACHE_HOME names the folder; or --record DIR",
			  "no folder for what is shipped: %s", folder_why(-result));
	o->record = spool;
	o->spooled = true;
	return result ? EXIT_SYSTEM : 0;
}
