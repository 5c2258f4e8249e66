/*
 * Where reports are kept.  A session's folder goes with the session, so reports
 * have a place of their own: one folder for each session's name, the user's
 * alone.  Both the reports of a name and the names are bounded; the oldest go.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/outside/kernel/folder.h"
#include "engine/outside/session/session.h"
#include "engine/outside/report/report.h"

/*
 * Limit (reports): reports kept of one session name. Beyond: the oldest one goes.
 */
#define REPORTS_MAX	100
/*
 * Limit (reports): session names of which reports are kept. Beyond: those of the oldest go.
 */
#define NAMES_MAX	200
#define ROOM		64	/* for a file's name */
#define REPORT_MAX	(64u << 20)

/* --- folders ------------------------------------------------------------------ */

/* The folder of all reports. */
static int root_open(int how)
{
	return folder_base("XDG_STATE_HOME", ".local/state", how);
}

/* A session's; nobody else may put files there for us. */
static int reports_open(const char *session, int how)
{
	int root, folder;

	if (!session_name_ok(session))
		return -EINVAL;
	root = root_open(how);
	if (root < 0)
		return root;
	folder = folder_open(root, session, how);
	close(root);
	return folder;
}

int report_log(const char *session)
{
	int folder = reports_open(session, FOLDER_MAKE);
	int words = folder < 0 ? folder : folder_append(folder, "session.log");

	if (folder >= 0)
		close(folder);
	return words;
}

/* --- numbers -------------------------------------------------------------------- */

static unsigned number_of(const char *name)
{
	unsigned number = 0;
	int end = 0;

	if (sscanf(name, "report-%u.json%n", &number, &end) < 1 || !end || name[end])
		return 0;
	return number;
}

static int by_number(const void *a, const void *b)
{
	unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;

	return (x > y) - (x < y);
}

static DIR *list_open(int folder)
{
	int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return again < 0 ? NULL : fdopendir(again);
}

static int numbers_read(int folder, unsigned **numbers)
{
	DIR *dir = list_open(folder);
	const struct dirent *d;
	int n = 0;

	*numbers = NULL;
	if (!dir)
		return -errno;
	while ((d = readdir(dir))) {
		unsigned number = number_of(d->d_name), *more;

		if (!number)
			continue;
		more = reallocarray(*numbers, (size_t)n + 1, sizeof(*more));
		if (!more)
			break;
		*numbers = more;
		more[n++] = number;
	}
	closedir(dir);
	if (n)
		qsort(*numbers, (size_t)n, sizeof(**numbers), by_number);
	return n;
}

int report_list(const char *session, unsigned **numbers)
{
	int folder = reports_open(session, FOLDER_LOOK), n;

	*numbers = NULL;
	if (folder < 0)
		return folder;
	n = numbers_read(folder, numbers);
	close(folder);
	return n;
}

/* --- the oldest go ----------------------------------------------------------------- */

static void name_make(char name[ROOM], unsigned number, const char *kind)
{
	int n = snprintf(name, ROOM, "report-%u.%s", number, kind);

	MUST(n < ROOM);
}

static void report_remove(int folder, unsigned number)
{
	static const char *const kinds[] = { "json", "txt", "request" };
	char name[ROOM];

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		name_make(name, number, kinds[i]);
		unlinkat(folder, name, 0);
	}
}

static void folder_remove(int root, const char *session)
{
	int folder = folder_open(root, session, FOLDER_LOOK), n;
	unsigned *numbers;

	if (folder < 0)
		return;
	n = numbers_read(folder, &numbers);
	for (int i = 0; i < n; i++)
		report_remove(folder, numbers[i]);
	free(numbers);
	close(folder);
	unlinkat(root, session, AT_REMOVEDIR);
}

/* Of too many names, the one that has been quiet for the longest. */
static void names_bound(const char *newest)
{
	int root = root_open(FOLDER_LOOK), n = 0;
	DIR *dir = root < 0 ? NULL : list_open(root);
	char oldest[SESSION_NAME_MAX + 1] = "";
	struct timespec when = { 0 };
	const struct dirent *d;
	struct stat st;

	while (dir && (d = readdir(dir))) {
		if (!session_name_ok(d->d_name) ||
		    fstatat(root, d->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
			continue;
		n++;
		if (!strcmp(d->d_name, newest) || (*oldest && st.st_mtim.tv_sec > when.tv_sec))
			continue;
		MUST(strlen(d->d_name) < sizeof(oldest));	/* session_name_ok */
		strcpy(oldest, d->d_name);
		when = st.st_mtim;
	}
	if (dir)
		closedir(dir);
	if (n > NAMES_MAX && *oldest)
		folder_remove(root, oldest);
	if (root >= 0)
		close(root);
}

/* --- writing and reading ------------------------------------------------------------- */

static int text_place(int folder, const char *name, char *text, size_t len)
{
	struct folder_part whole = { text, len };
	int result = text ? folder_write(folder, name, &whole, 1) : -ENOMEM;

	free(text);
	return result;
}

static int json_write(const json_t *report, int folder, unsigned number)
{
	char *text = json_dumps(report, JSON_INDENT(1)), name[ROOM];

	name_make(name, number, "json");
	return text_place(folder, name, text, text ? strlen(text) : 0);
}

static void text_write(const json_t *report, int folder, unsigned number)
{
	char *text = NULL, name[ROOM];
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return;
	report_text(f, report);
	fclose(f);
	name_make(name, number, "txt");
	text_place(folder, name, text, len);
}

/* The bytes of a finding's request, and their path in the report. */
static void request_write(json_t *report, int folder, unsigned number, const char *path,
			  const void *bytes, size_t len)
{
	json_t *request = json_object_get(json_object_get(report, "finding"), "request");
	struct folder_part whole = { bytes, len };
	char name[ROOM];

	name_make(name, number, "request");
	if (json_is_object(request) && !folder_write(folder, name, &whole, 1))
		json_object_set_new(request, "file", json_sprintf("%s/%s", path, name));
}

static unsigned number_next(int folder)
{
	unsigned *numbers, number = 1;
	int n = numbers_read(folder, &numbers);

	if (n > 0)
		number = numbers[n - 1] + 1;
	for (int i = 0; i <= n - REPORTS_MAX; i++)
		report_remove(folder, numbers[i]);
	free(numbers);
	return number;
}

int report_keep(json_t *report, const void *bytes, size_t len, char *path, size_t size)
{
	const char *session = json_string_value(json_object_get(report, "session"));
	int result, folder = reports_open(session ? session : "", FOLDER_MAKE);
	char where[PATH_MAX];
	unsigned number;

	if (folder < 0)
		return folder;
	number = number_next(folder);
	folder_path(folder, where, sizeof(where));
	json_object_set_new(report, "number", json_integer(number));
	snprintf(path, size, "%s/report-%u.json", where, number);
	request_write(report, folder, number, where, bytes, len);
	result = json_write(report, folder, number);
	if (!result)
		text_write(report, folder, number);
	close(folder);
	names_bound(session);
	return result;
}

static json_t *report_read(int folder, unsigned number)
{
	char name[ROOM], *text;
	json_t *report;
	size_t len;

	name_make(name, number, "json");
	text = folder_read(folder, name, REPORT_MAX, &len);
	report = text ? json_loadb(text, len, 0, NULL) : NULL;
	free(text);
	return report;
}

json_t *report_load(const char *session, unsigned number)
{
	int folder = reports_open(session, FOLDER_LOOK);
	json_t *report = folder < 0 ? NULL : report_read(folder, number);

	if (folder >= 0)
		close(folder);
	return report;
}

void report_count(const char *session, unsigned number, uint64_t count)
{
	int folder = reports_open(session, FOLDER_LOOK);
	json_t *report = folder < 0 ? NULL : report_read(folder, number);
	json_t *finding = json_object_get(report, "finding");

	if (json_is_object(finding)) {
		json_object_set_new(finding, "count", json_integer((json_int_t)count));
		if (!json_write(report, folder, number))
			text_write(report, folder, number);
	}
	if (folder >= 0)
		close(folder);
	json_decref(report);
}
