/*
 * Paths of 300 and of 4,000 characters, which are natively paths as others are: of files that
 * are opened, mapped, moved and written, of a folder with a socket, of a program.
 */
#include "check.h"
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define PART	200
#define LARGE	(64 << 20)	/* more than is told of a file that is mapped */

static char path[PATH_MAX], folder[PATH_MAX - 2];

/* A folder whose file "f" has a path of so many characters. */
static void folders_make(const char *base, size_t length)
{
	size_t want = length - 2, n = (size_t)snprintf(folder, sizeof(folder), "%s", base);

	while (n < want) {
		size_t part = want - n - 1 > PART + 1 ? PART : want - n - 1;

		folder[n++] = '/';
		memset(folder + n, 'd', part);
		n += part;
		folder[n] = 0;
		CHECK_EQ(mkdir(folder, 0755) && errno != EEXIST, 0);
	}
	CHECK_EQ(strlen(folder), want);
	memcpy(path, folder, want);
	strcpy(path + want, "/f");
	CHECK_EQ(strlen(path), length);
}

/* What is read by a descriptor, and by two mappings, is what was written. */
static void file_used(const char *name)
{
	char text[64], got[64] = "", *at;
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644), n;

	CHECK(fd >= 0);
	n = snprintf(text, sizeof(text), "%zu characters", strlen(path));
	CHECK_EQ(write(fd, text, (size_t)n), n);
	at = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	CHECK(at != MAP_FAILED && !strcmp(at, text));
	CHECK_EQ(munmap(at, 4096), 0);
	at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(at != MAP_FAILED && !strcmp(at, text));
	at[0] = 'x';
	CHECK_EQ(pread(fd, got, sizeof(got), 0), n);
	CHECK_EQ(got[0], 'x');
	CHECK_EQ(munmap(at, 4096), 0);
	CHECK_EQ(close(fd), 0);
	/* Read-only, as libraries are. */
	fd = open(name, O_RDONLY);
	at = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	CHECK(at != MAP_FAILED && !memcmp(at, got, (size_t)n));
	dprintf(1, "%s\n", at);
	CHECK_EQ(munmap(at, 4096), 0);
	CHECK_EQ(close(fd), 0);
}

/*
 * Another process' file, which is there to stay, as a library is: a follower maps it by the
 * path that it was opened by.
 */
static void others_used(void)
{
	char name[PATH_MAX];
	int fd, status;
	pid_t child;
	char *at;

	strcpy(name, path);
	name[strlen(name) - 1] = 'o';
	child = fork();
	if (!child) {
		fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
		_exit(fd < 0 || write(fd, path, 300) != 300 || ftruncate(fd, LARGE));
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	fd = open(name, O_RDONLY);
	at = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	CHECK(at != MAP_FAILED && !memcmp(at, path, 300));
	CHECK_EQ(munmap(at, 4096), 0);
	CHECK_EQ(close(fd), 0);
}

static void moved(void)
{
	char other[PATH_MAX + 2];

	snprintf(other, sizeof(other), "%s/g", folder);
	CHECK_EQ(rename(path, other), 0);
	CHECK_FAILS(open(path, O_RDONLY), ENOENT);
	file_used(other);
	CHECK_EQ(rename(other, path), 0);
}

/* By a folder's descriptor, and from a working directory whose path is as long. */
static void from_folder(void)
{
	int dir = open(folder, O_RDONLY | O_DIRECTORY), fd;
	char buf[PATH_MAX], back[PATH_MAX];

	CHECK(dir >= 0 && getcwd(back, sizeof(back)));
	fd = openat(dir, "f", O_RDONLY);
	CHECK(fd >= 0 && mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0) != MAP_FAILED);
	close(fd);
	CHECK_EQ(fchdir(dir), 0);
	CHECK(getcwd(buf, sizeof(buf)) && !strcmp(buf, folder));
	file_used("f");
	CHECK_EQ(chdir(back), 0);
	CHECK_EQ(close(dir), 0);
}

static void socket_used(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX, .sun_path = "s" }, got;
	socklen_t size = sizeof(got);
	int s = socket(AF_UNIX, SOCK_STREAM, 0), c = socket(AF_UNIX, SOCK_STREAM, 0), p;
	char back[PATH_MAX + 2], word[3] = "";

	CHECK(s >= 0 && c >= 0 && getcwd(back, sizeof(back)));
	CHECK_EQ(chdir(folder), 0);
	CHECK_EQ(bind(s, (struct sockaddr *)&a, sizeof(a)), 0);
	CHECK_EQ(listen(s, 1), 0);
	CHECK_EQ(connect(c, (struct sockaddr *)&a, sizeof(a)), 0);
	CHECK_EQ(chdir(back), 0);
	p = accept(s, NULL, NULL);
	CHECK(p >= 0);
	CHECK_EQ(getpeername(c, (struct sockaddr *)&got, &size), 0);
	CHECK(!strcmp(got.sun_path, "s"));
	CHECK_EQ(write(c, "hi", 2), 2);
	CHECK_EQ(read(p, word, 2), 2);
	CHECK(!strcmp(word, "hi"));
	close(s), close(c), close(p);
	snprintf(back, sizeof(back), "%s/s", folder);
	CHECK_EQ(unlink(back), 0);
}

/* This program, copied there. */
static void executed(void)
{
	static char bytes[65536];
	int from = open("/proc/self/exe", O_RDONLY), to, status;
	ssize_t n;
	pid_t child;

	CHECK_EQ(unlink(path), 0);
	to = open(path, O_WRONLY | O_CREAT, 0755);
	CHECK(from >= 0 && to >= 0);
	while ((n = read(from, bytes, sizeof(bytes))) > 0)
		CHECK_EQ(write(to, bytes, (size_t)n), n);
	close(from), close(to);
	child = fork();
	if (!child) {
		execl(path, path, "there", NULL);
		_exit(127);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
}

/* One character more than there may be. */
static void too_long(void)
{
	char more[PATH_MAX + 2];

	memset(more, 'a', sizeof(more));
	for (size_t i = 0; i < sizeof(more); i += PART)
		more[i] = '/';
	more[PATH_MAX] = 0;
	CHECK_FAILS(open(more, O_RDONLY), ENAMETOOLONG);
	CHECK_FAILS(execl(more, more, NULL), ENAMETOOLONG);
}

static void all(const char *base, size_t length)
{
	folders_make(base, length);
	others_used();
	file_used(path);
	moved();
	from_folder();
	socket_used();
	executed();
	too_long();
}

static int there(const char *self)
{
	char got[PATH_MAX] = "";

	CHECK_EQ(readlink("/proc/self/exe", got, sizeof(got) - 1), strlen(self));
	CHECK(!strcmp(got, self));
	dprintf(1, "executed: %zu characters\n", strlen(self));
	return 0;
}

/* By a version that is installed elsewhere: --map. */
static int opened(const char *base)
{
	for (size_t length = 300; length < PATH_MAX; length += 3700) {
		folders_make(base, length);
		CHECK_FAILS(open(path, O_RDONLY), ENOENT);
	}
	return passed("opened");
}

int main(int argc, char **argv)
{
	char base[PATH_MAX];

	if (argc > 2)
		return opened(argv[2]);
	if (argc > 1)
		return there(argv[0]);
	CHECK(getcwd(base, sizeof(base)));
	all(base, 300);
	all(base, 4000);
	return passed("long_paths");
}
