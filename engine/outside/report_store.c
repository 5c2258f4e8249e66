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

#include "engine/outside/report.h"
#include "engine/outside/session.h"

#define REPORTS_MAX	100	/* kept of a name */
#define NAMES_MAX	200
#define ROOM		64	/* for a file's name behind a folder's */

/* --- folders ------------------------------------------------------------------ */

static int folder_make(const char *path, mode_t mode)
{
	return mkdir(path, mode) < 0 && errno != EEXIST ? -errno : 0;
}

/* Makes every folder on the way, as XDG asks: those that are new are the user's. */
static int folders_make(char *path)
{
	int result = 0;

	for (char *at = strchr(path + 1, '/'); at && !result; at = strchr(at + 1, '/')) {
		*at = 0;
		result = folder_make(path, 0700);
		*at = '/';
	}
	return result ? result : folder_make(path, 0700);
}

/* The folder of all reports. */
static int root_find(char *path, size_t size)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	int n;

	if (state && state[0] == '/')
		n = snprintf(path, size, "%s/mve", state);
	else if (home && home[0] == '/')
		n = snprintf(path, size, "%s/.local/state/mve", home);
	else
		n = snprintf(path, size, "/var/tmp/mve-%u", geteuid());
	return (size_t)n + SESSION_NAME_MAX + ROOM < size ? 0 : -ENAMETOOLONG;
}

/* Nobody else may put files there for us. */
static int folder_check(const char *path)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return -errno;
	return S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 022) ? 0 : -EPERM;
}

int report_folder(const char *session, bool make, char *path, size_t size)
{
	int result = root_find(path, size);

	if (!result && !session_name_ok(session))
		result = -EINVAL;
	if (result)
		return result;
	strcat(path, "/");
	strcat(path, session);
	if (make)
		result = folders_make(path);
	return result ? result : folder_check(path);
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

static int numbers_read(const char *folder, unsigned **numbers)
{
	DIR *dir = opendir(folder);
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
	char folder[PATH_MAX];
	int result = report_folder(session, false, folder, sizeof(folder));

	*numbers = NULL;
	return result ? result : numbers_read(folder, numbers);
}

/* --- the oldest go ----------------------------------------------------------------- */

static void report_remove(const char *folder, unsigned number)
{
	char path[PATH_MAX + ROOM];

	snprintf(path, sizeof(path), "%s/report-%u.json", folder, number);
	unlink(path);
	snprintf(path, sizeof(path), "%s/report-%u.txt", folder, number);
	unlink(path);
	snprintf(path, sizeof(path), "%s/report-%u.request", folder, number);
	unlink(path);
}

static void folder_remove(const char *folder)
{
	unsigned *numbers;
	int n = numbers_read(folder, &numbers);

	for (int i = 0; i < n; i++)
		report_remove(folder, numbers[i]);
	free(numbers);
	rmdir(folder);
}

/* Of too many names, the one that has been quiet for the longest. */
static void names_bound(const char *newest)
{
	char root[PATH_MAX], path[PATH_MAX * 2], oldest[PATH_MAX * 2] = "";
	struct timespec when = { 0 };
	const struct dirent *d;
	struct stat st;
	int n = 0;
	DIR *dir = root_find(root, sizeof(root)) ? NULL : opendir(root);

	while (dir && (d = readdir(dir))) {
		snprintf(path, sizeof(path), "%s/%s", root, d->d_name);
		if (!session_name_ok(d->d_name) || lstat(path, &st) < 0 || !S_ISDIR(st.st_mode))
			continue;
		n++;
		if (!strcmp(path, newest) || (*oldest && (st.st_mtim.tv_sec > when.tv_sec)))
			continue;
		strcpy(oldest, path);
		when = st.st_mtim;
	}
	if (dir)
		closedir(dir);
	if (n > NAMES_MAX && *oldest)
		folder_remove(oldest);
}

/* --- writing and reading ------------------------------------------------------------- */

static int json_write(const json_t *report, const char *path)
{
	char temp[PATH_MAX + ROOM];

	snprintf(temp, sizeof(temp), "%s.tmp", path);
	errno = 0;
	if (!json_dump_file(report, temp, JSON_INDENT(1)) && !rename(temp, path))
		return 0;
	unlink(temp);
	return errno ? -errno : -ENOSPC;
}

static void text_write(const json_t *report, const char *path)
{
	FILE *f = fopen(path, "we");

	if (!f)
		return;
	report_text(f, report);
	fclose(f);
}

/* The bytes of a finding's request, and their path in the report. */
static void request_write(json_t *report, const char *path, const void *bytes, size_t len)
{
	json_t *request = json_object_get(json_object_get(report, "finding"), "request");
	FILE *f = json_is_object(request) ? fopen(path, "we") : NULL;

	if (!f)
		return;
	if (fwrite(bytes, 1, len, f) == len)
		json_object_set_new(request, "file", json_string(path));
	fclose(f);
}

int report_keep(json_t *report, const void *bytes, size_t len, char *path, size_t size)
{
	const char *session = json_string_value(json_object_get(report, "session"));
	char folder[PATH_MAX], text[PATH_MAX + ROOM];
	unsigned *numbers, number = 1;
	int n, result = report_folder(session ? session : "", true, folder, sizeof(folder));

	if (result)
		return result;
	n = numbers_read(folder, &numbers);
	if (n > 0)
		number = numbers[n - 1] + 1;
	for (int i = 0; i <= n - REPORTS_MAX; i++)
		report_remove(folder, numbers[i]);
	free(numbers);
	json_object_set_new(report, "number", json_integer(number));
	snprintf(path, size, "%s/report-%u.json", folder, number);
	snprintf(text, sizeof(text), "%s/report-%u.request", folder, number);
	request_write(report, text, bytes, len);
	snprintf(text, sizeof(text), "%s/report-%u.txt", folder, number);
	result = json_write(report, path);
	if (!result)
		text_write(report, text);
	names_bound(folder);
	return result;
}

json_t *report_load(const char *session, unsigned number)
{
	char path[PATH_MAX];

	if (report_folder(session, false, path, sizeof(path) - ROOM))
		return NULL;
	snprintf(path + strlen(path), ROOM, "/report-%u.json", number);
	return json_load_file(path, 0, NULL);
}

void report_count(const char *session, unsigned number, uint64_t count)
{
	json_t *report = report_load(session, number);
	json_t *finding = json_object_get(report, "finding");
	char path[PATH_MAX];

	if (json_is_object(finding) && !report_folder(session, false, path, sizeof(path) - ROOM)) {
		size_t n = strlen(path);

		json_object_set_new(finding, "count", json_integer((json_int_t)count));
		snprintf(path + n, ROOM, "/report-%u.json", number);
		json_write(report, path);
		snprintf(path + n, ROOM, "/report-%u.txt", number);
		text_write(report, path);
	}
	json_decref(report);
}
