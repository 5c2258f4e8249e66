/*
 * Objects of rules, as the monitor reads them (rules_load.c): what says of itself that it
 * lies where it cannot is refused, and nothing is written for it beside its bank.
 */
#include <criterion/criterion.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/abi/rules.h"
#include "engine/abi/rules_seal.h"
#include "engine/outside/rules/rules_load.h"

#define CODE	0x1000u
#define LEN	0x3000u

struct object {
	Elf64_Ehdr head;
	Elf64_Phdr seg[2];
};

static void fill(struct object *o)
{
	memset(o, 0, sizeof(*o));
	memcpy(o->head.e_ident, ELFMAG, SELFMAG);
	o->head.e_ident[EI_CLASS] = ELFCLASS64;
	o->head.e_machine = EM_X86_64;
	o->head.e_type = ET_DYN;
	o->head.e_phentsize = sizeof(Elf64_Phdr);
	o->head.e_phnum = 2;
	o->head.e_phoff = sizeof(o->head);
	o->head.e_entry = CODE;
	o->seg[0] = (Elf64_Phdr){ .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = LEN,
				  .p_memsz = LEN };
	o->seg[1] = (Elf64_Phdr){ .p_type = PT_LOAD, .p_flags = PF_R | PF_W, .p_vaddr = LEN,
				  .p_filesz = 16, .p_memsz = CODE };
}

/* With a seal that says that it is whole: whoever can make an object can make that. */
static const char *read_sealed(const struct object *o, size_t len)
{
	struct rules_seal seal = { .magic = RULES_SEAL, .version = RULES_VERSION, .len = len };
	struct rules_hash h = RULES_HASH_BEGIN;
	int fd = memfd_create("object", 0);
	uint8_t *bytes = calloc(1, len);
	struct rules_bank *b;
	const char *why = NULL;

	memcpy(bytes, o, sizeof(*o));
	rules_hash_add(&h, bytes, len);
	seal.hash[0] = h.a;
	seal.hash[1] = h.b;
	cr_assert_eq(write(fd, bytes, len), (ssize_t)len);
	cr_assert_eq(write(fd, &seal, sizeof(seal)), (ssize_t)sizeof(seal));
	b = rules_read(fd, &why);
	cr_expect_eq(!b, why != NULL);
	if (b)
		cr_expect(b->size <= sizeof(b->bytes) && b->text <= b->size);
	free(b);
	free(bytes);
	close(fd);
	return why;
}

Test(object, good)
{
	struct object o;

	fill(&o);
	cr_expect_null(read_sealed(&o, LEN));
}

/* Each number of each segment at each of its edges; most of them in turn wrap a sum. */
Test(object, edges)
{
	static const uint64_t edge[] = {
		0, 1, 15, 0xfff, CODE, LEN, RULES_BANK - 16, RULES_BANK, (4u << 20),
		0xffffffff, 1ull << 47, 1ull << 63, -1ull << 47, -(uint64_t)RULES_BANK,
		-(uint64_t)LEN, -(uint64_t)CODE, -16ull, -1ull,
	};
	enum { EDGES = sizeof(edge) / sizeof(edge[0]) };
	unsigned refused = 0;

	for (unsigned s = 0; s < 2; s++)
		for (unsigned i = 0; i < EDGES * EDGES * EDGES; i++) {
			struct object o;

			fill(&o);
			o.seg[s].p_vaddr = edge[i % EDGES];
			o.seg[s].p_memsz = edge[i / EDGES % EDGES];
			o.seg[s].p_filesz = edge[i / EDGES / EDGES];
			refused += read_sealed(&o, LEN) != NULL;
		}
	cr_expect_gt(refused, EDGES * EDGES * EDGES);
}

/* The sum of place and size is small, and so many bytes do not fit behind the place. */
Test(object, wraps)
{
	struct object o;

	fill(&o);
	o.seg[1].p_vaddr = RULES_BANK - 16;
	o.seg[1].p_memsz = -(uint64_t)RULES_BANK + CODE;
	o.seg[1].p_filesz = 12 << 20;
	cr_expect_str_eq(read_sealed(&o, 13 << 20), "it is too large");
}

Test(object, headers)
{
	struct object o;

	fill(&o);
	o.head.e_phoff = -8ull;
	cr_expect_not_null(read_sealed(&o, LEN));
	fill(&o);
	o.head.e_phnum = 0xffff;
	cr_expect_not_null(read_sealed(&o, LEN));
	fill(&o);
	o.seg[0].p_offset = -8ull;
	cr_expect_not_null(read_sealed(&o, LEN));
	fill(&o);
	o.head.e_entry = -1ull;
	cr_expect_not_null(read_sealed(&o, LEN));
}
