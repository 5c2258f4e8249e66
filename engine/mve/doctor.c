/*
 * mve doctor: each thing that mve asks of the machine, whether it is there,
 * and what to do if not.  The checks are engine/outside/control/doctor.c's table; this
 * file only runs them and prints.
 *
 * One line a check, at most 80 columns; then, for what is not there, what is
 * lost and the remedy; the last line is the verdict.  Exit 0 when all that is
 * required is there, 1 when not, 2 for wrong use, 3 when it cannot print.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "engine/mve/commands.h"
#include "engine/outside/control/doctor.h"
#include "engine/outside/monitor/say.h"

#define COLUMNS		80
#define STATE_COLUMNS	13	/* "no (optional)" */
#define NAME_COLUMNS	21
#define DETAIL_COLUMNS	(COLUMNS - STATE_COLUMNS - NAME_COLUMNS - 4)

/* Prints words with breaks, from this column on; `indent` on later lines. */
static void print_wrapped(const char *text, int column, int indent)
{
	while (*text) {
		int length = strcspn(text, " ");

		if (column > indent && column + 1 + length > COLUMNS)
			column = printf("\n%*s", indent, "") - 1;
		else if (column > indent)
			column += printf(" ");
		column += printf("%.*s", length, text);
		text += length;
		text += strspn(text, " ");
	}
	printf("\n");
}

static void print_check(const struct doctor_check *check,
			const struct doctor_finding *f)
{
	const char *state = f->ok ? "ok" :
			    check->required ? "MISSING" : "no (optional)";

	printf("%-*s  %-*s  %.*s\n", STATE_COLUMNS, state, NAME_COLUMNS,
	       check->name, DETAIL_COLUMNS, f->detail);
}

static void print_remedy(const struct doctor_check *check,
			 const struct doctor_finding *f)
{
	if (f->ok)
		return;
	printf("\n%s\n  lost:  ", check->name);
	print_wrapped(check->lost, 9, 9);
	printf("  to do: ");
	print_wrapped(check->remedy, 9, 9);
}

static void print_verdict(int missing, int without)
{
	if (missing)
		printf("\nnot ready: %d required missing\n", missing);
	else if (without)
		printf("\nready: all that is required is here, %d optional not\n",
		       without);
	else
		printf("\nready: everything is here\n");
}

static int run_text(void)
{
	struct doctor_finding *found = calloc(doctor_checks_count,
					      sizeof(*found));
	int missing = 0, without = 0;

	if (!found)
		return -ENOMEM;
	for (int i = 0; i < doctor_checks_count; i++) {
		doctor_run(&doctor_checks[i], &found[i]);
		print_check(&doctor_checks[i], &found[i]);
		missing += !found[i].ok && doctor_checks[i].required;
		without += !found[i].ok && !doctor_checks[i].required;
	}
	for (int i = 0; i < doctor_checks_count; i++)
		print_remedy(&doctor_checks[i], &found[i]);
	print_verdict(missing, without);
	free(found);
	return missing;
}

static int run_json(void)
{
	json_t *checks = json_array(), *all;
	int missing = 0, err;

	for (int i = 0; i < doctor_checks_count; i++) {
		const struct doctor_check *check = &doctor_checks[i];
		struct doctor_finding f;

		doctor_run(check, &f);
		missing += !f.ok && check->required;
		json_array_append_new(checks, json_pack(
			"{s:s, s:b, s:b, s:s, s:s}", "name", check->name,
			"ok", f.ok, "required", check->required,
			"detail", f.detail, "remedy", check->remedy));
	}
	all = json_pack("{s:o, s:b}", "checks", checks, "ok", !missing);
	err = json_dumpf(all, stdout, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
	printf("\n");
	json_decref(all);
	return err ? -EIO : missing;
}

static int help(void)
{
	puts("usage: mve doctor [--json]\n\n"
	     "Tries each thing that mve asks of this machine, and says what is\n"
	     "lost and what to do where one is not there.  Exits with 0 when all\n"
	     "that is required is there, with 1 when not.");
	return EXIT_OK;
}

int cmd_doctor(int argc, char **argv)
{
	bool json = false;
	int missing;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
			return help();
		json = !strcmp(argv[i], "--json");
		if (!json) {
			say_error("mve doctor --json",
				  "unknown option: %s: doctor takes --json",
				  argv[i]);
			return EXIT_USE;
		}
	}
	missing = json ? run_json() : run_text();
	if (missing < 0 && !ferror(stdout)) {
		say_error(NULL, "cannot print: doctor: %s", strerror(-missing));
		return EXIT_SYSTEM;
	}
	return missing < 0 ? EXIT_SYSTEM : missing ? EXIT_NO : EXIT_OK;
}
