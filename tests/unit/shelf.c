/*
 * The shelf: whose file a part of it stands for is known wherever the file's name leads by now,
 * what is left of it is no file's, and what not all may read does not come onto it.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/outside/kernel/maps.h"
#include "engine/outside/kernel/remote.h"
#include "engine/outside/patch/mapped.h"
#include "engine/outside/patch/patch.h"
#include "engine/outside/patch/patched.h"
#include "engine/outside/patch/shelf.h"
#include "engine/outside/plan/plan.h"

#define PAGE	4096ull
#define LIBRARY	(3 * PAGE)	/* a page of each: what is read, code, and data */

static char folder[32], path[64], other[64];

static void folder_make(void)
{
	strcpy(folder, "/tmp/unit-shelf-XXXXXX");
	cr_assert(mkdtemp(folder));
	cr_assert_eq(chmod(folder, 0755), 0);
	snprintf(path, sizeof(path), "%s/library", folder);
	snprintf(other, sizeof(other), "%s/other", folder);
}

static void folder_remove(void)
{
	unlink(path);
	unlink(other);
	rmdir(folder);
}

static void file_make(const char *name)
{
	int fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	cr_assert_geq(fd, 0);
	cr_assert_eq(ftruncate(fd, LIBRARY), 0);
	close(fd);
}

/* As a loader maps it; its code. */
static uint8_t *library_map(const char *name)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	uint8_t *at = mmap(NULL, LIBRARY, PROT_READ, MAP_PRIVATE, fd, 0);

	cr_assert_neq(at, MAP_FAILED);
	cr_assert_eq(mprotect(at + PAGE, PAGE, PROT_READ | PROT_EXEC), 0);
	close(fd);
	return at + PAGE;
}

static struct map map_at(const uint8_t *code, bool all)
{
	uint64_t at = (uint64_t)code;
	struct map found = { 0 };
	struct maps maps;

	cr_assert_eq(all ? maps_read(getpid(), &maps) :
			   maps_read_part(getpid(), at, at + PAGE, &maps), 0);
	for (size_t i = 0; i < maps.n; i++)
		if (at >= maps.map[i].start && at < maps.map[i].end)
			found = maps.map[i];
	maps_free(&maps);
	cr_assert(found.end, "nothing is mapped there");
	return found;
}

static unsigned part_add(uint8_t *code)
{
	struct map m = map_at(code, true);
	uint8_t *to;
	unsigned part = shelf_add(&m, &to);

	cr_assert_neq(part, SHELF_NONE);
	memset(to, 0x90, m.end - m.start);
	return part;
}

static void part_map(unsigned part, uint8_t *code)
{
	const struct shelf_part *p = shelf_part(part);

	cr_assert_eq(mmap(code, p->len, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, shelf_fd(),
			  (off_t)p->at), code);
}

static ino_t inode_of(const char *name)
{
	struct stat st;

	cr_assert_eq(stat(name, &st), 0);
	return st.st_ino;
}

/* However it is asked for, it has this path, and this is found by it. */
static void stands_for(const uint8_t *code, const char *name, ino_t inode, bool by_map)
{
	for (int all = 0; all < 2; all++) {
		struct map m = map_at(code, all);
		struct near_file f;

		cr_assert(m.shelved && m.inode == inode);
		cr_assert_str_eq(m.path, name);
		if (by_map && geteuid())	/* for root alone */
			continue;
		cr_assert_eq(mapped_find(getpid(), &m, &f), 0);
		cr_assert_eq(f.st.st_ino, inode);
		near_close(&f);
		mapped_forget();
	}
}

Test(shelf, names, .init = folder_make, .fini = folder_remove)
{
	char gone[sizeof(path) + 16];
	uint8_t *code;
	ino_t inode;

	file_make(path);
	inode = inode_of(path);
	code = library_map(path);
	part_map(part_add(code), code);
	stands_for(code, path, inode, false);
	cr_assert_eq(rename(path, other), 0);
	stands_for(code, other, inode, false);
	/* An upgrade: another file has the name. */
	file_make(path);
	cr_assert_eq(rename(path, other), 0);
	snprintf(gone, sizeof(gone), "%s (deleted)", other);
	stands_for(code, gone, inode, true);
}

/* The one who had it first knew it by another name. */
Test(shelf, first, .init = folder_make, .fini = folder_remove)
{
	uint8_t *first, *second;
	unsigned part;

	file_make(path);
	cr_assert_eq(link(path, other), 0);
	first = library_map(path);
	second = library_map(other);
	part = part_add(first);
	part_map(part, first);
	part_map(part, second);
	stands_for(first, path, inode_of(path), false);
	stands_for(second, other, inode_of(path), false);
}

Test(shelf, rest, .init = folder_make, .fini = folder_remove)
{
	uint8_t *code[3], *all;
	unsigned part[3];

	file_make(path);
	for (int i = 0; i < 3; i++) {
		code[i] = library_map(path);
		part[i] = part_add(code[i]);
	}
	all = mmap(NULL, SHELF_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE, shelf_fd(), 0);
	cr_assert_neq(all, MAP_FAILED);
	for (int i = 0; i < 3; i += 2)
		cr_assert_eq(mremap(all + shelf_part(part[i])->at, PAGE, PAGE,
				    MREMAP_MAYMOVE | MREMAP_FIXED, code[i]), code[i]);
	for (int i = 0; i < 2; i++) {
		struct map left = map_at(all + shelf_part(part[1])->at, i), moved = map_at(code[2], i);

		cr_assert(!left.shelved && shelf_is_rest(&left), "%s", left.path);
		cr_assert(moved.shelved && !shelf_is_rest(&moved));
	}
}

static struct map libc_map(void)
{
	struct map found = { 0 };
	struct maps maps;

	cr_assert_eq(maps_read(getpid(), &maps), 0);
	for (size_t i = 0; i < maps.n; i++)
		if (maps.map[i].exec && strstr(maps.map[i].path, "/libc.so"))
			found = maps.map[i];
	maps_free(&maps);
	cr_assert(found.end, "no libc");
	return found;
}

/* How much of a copy of libc's code is on the shelf once it has been used often. */
static uint64_t copy_use(void)
{
	struct map of = libc_map(), m;
	struct shelf_view shelf = { .len = ~0ull };
	uint64_t len = of.end - of.start;
	int memory = memory_open(getpid()), fd;
	char words[400];
	struct plan *p;
	uint8_t *code;

	snprintf(words, sizeof(words), "cp %s %s && chmod 644 %s", of.path, path, path);
	cr_assert_eq(system(words), 0);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	code = mmap(NULL, len, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, (off_t)of.offset);
	cr_assert_neq(code, MAP_FAILED);
	close(fd);
	m = map_at(code, true);
	cr_assert_eq(patch_plan(getpid(), memory, &m, &p), 0);
	for (int i = 0; i < 3; i++) {
		struct board_room room = { 0 };
		struct patch_sum sum = { 0 };

		patched_again(p, getpid(), memory, &m, &room, &sum, &shelf);
	}
	plan_free(p);
	memory_close(memory);
	return shelf.moves ? shelf.move[0].len : 0;
}

Test(shelf, everyones, .init = folder_make, .fini = folder_remove)
{
	struct map of = libc_map();

	cr_assert_eq(copy_use(), of.end - of.start);
}

Test(shelf, not_everyones, .init = folder_make, .fini = folder_remove)
{
	cr_assert_eq(chmod(folder, 0700), 0);
	cr_assert_eq(copy_use(), 0);
}
