/*
 * mve-driver: runs a server that is built as a shared object, and updates it when it is told.
 *
 * Orders come over a socket of the file system from our own uid, a line each, and are carried
 * out by a thread that is none of the server's (control.c).
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/update/control.h"
#include "engine/update/session.h"

static int usage(FILE *to, int status)
{
	fprintf(to, "usage: mve-driver [-c SOCKET] SERVER.so [ARGUMENT...]\n"
		"       mve-driver -a SOCKET [-r N/MS] update NEW.so XFORM.so [LIMIT_MS]\n"
		"       mve-driver -a SOCKET dry NEW.so XFORM.so [LIMIT_MS]\n"
		"       -c SOCKET: where it is told to update\n"
		"       -a SOCKET: tells who listens there; dry only says what would be\n"
		"       LIMIT_MS: for threads to come to their points: 1 to 3600000 (1000)\n"
		"       -r N/MS: if the moment was bad, up to N times more, each MS later\n");
	return status;
}

int main(int argc, char **argv)
{
	static const struct option longs[] = { { "help", no_argument, NULL, 'h' }, { 0 } };
	const char *socket = NULL, *ask = NULL;
	struct patience patience = { 0, 0 };
	static struct image image;
	char why[WHY_SIZE];
	int option;

	while ((option = getopt_long(argc, argv, "+c:a:r:h", longs, NULL)) != -1)
		switch (option) {
		case 'c': socket = optarg; break;
		case 'a': ask = optarg; break;
		case 'r':
			if (sscanf(optarg, "%u/%u", &patience.tries, &patience.pause_ms) != 2)
				return usage(stderr, 2);
			break;
		case 'h': return usage(stdout, 0);
		default: return usage(stderr, 2);
		}
	if (optind == argc)
		return usage(stderr, 2);
	if (ask && !control_is_order(argc - optind, argv + optind))
		return usage(stderr, 2);
	if (ask)
		return control_ask(ask, patience, argc - optind, argv + optind);
	if (!image_load(&image, argv[optind], why, sizeof(why))) {
		fprintf(stderr, "mve-driver: cannot load: %s: %s\n", argv[optind], why);
		return 127;
	}
	update_begin(&image);
	if (socket && !control_open(socket))
		return 3;
	session_begin(argv[optind]);
	argc -= optind;
	argv += optind;
	optind = 0;	/* the server's getopt() begins anew */
	return points_run(&image, argc, argv);
}
