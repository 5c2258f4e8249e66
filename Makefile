# One Makefile for the whole tree.  `make demo` and `make check` need nothing
# installed: both begin with `deps`, which installs what packages.txt names.

B	:= build
# make V=1 shows whole commands.
say	= $(if $(V),,@echo '  $(1)' &&)
CC	:= gcc
CLANG	:= clang-19
# bpftool and some servers of the tests are in /usr/sbin, where a user does not look.
export PATH := $(PATH):/usr/sbin:/sbin
WARN	:= -Wall -Wextra -Wmissing-prototypes -Wstrict-prototypes -Wvla -Wshadow -Werror
# A header's MUST says engine/..., as a source's does.
NAMES	:= -ffile-prefix-map=./=
CFLAGS	:= -std=gnu17 -O2 -g $(NAMES) $(WARN)
CPPFLAGS := -I. -I$(B) -D_GNU_SOURCE
LDLIBS	:= -lZydis -lbpf -lelf -ldw -ljansson -lncurses -luring -lzstd -lpthread

OUTSIDE	:= $(wildcard engine/outside/*/*.c engine/core/*.c)
MVE	:= $(wildcard engine/mve/*.c engine/mve/*/*.c)
INSIDE	:= $(wildcard engine/inside/*/*.c engine/inside/*/*.S)
BPF	:= $(wildcard bpf/*.bpf.c)

obj	= $(patsubst %,$(B)/%.o,$(basename $(1)))
# An archive: what of core/ only the inside can host stays out of programs.
lib_objs := $(B)/libmve.a
mve_objs := $(call obj,$(MVE))
skels	:= $(patsubst bpf/%.bpf.c,$(B)/bpf/%.skel.h,$(BPF))

# What speaks with NATS is a program of its own, made where the library is (libnats-dev).
NATS	:= $(wildcard /usr/include/nats/nats.h)
ship_objs := $(call obj,$(wildcard engine/ship/*.c))

all: $(B)/mve $(B)/rulec $(if $(NATS),$(B)/mve-ship) $(B)/mve-xform $(B)/mve-driver checkpoint

deps:
	@./tools/install-packages packages.txt

# The monitor and the command line: ordinary programs.
$(B)/engine/outside/%.o: engine/outside/%.c | $(skels)
	@mkdir -p $(@D)
	$(call say,cc $<) $(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

$(B)/engine/core/%.o: engine/core/%.c
	@mkdir -p $(@D)
	$(call say,cc $<) $(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

$(B)/engine/mve/%.o: engine/mve/%.c
	@mkdir -p $(@D)
	$(call say,cc $<) $(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

$(B)/engine/mve/run/replay_gdb.o: engine/mve/run/gdb.py

$(B)/libmve.a: $(call obj,$(OUTSIDE)) $(B)/inside.blob.o
	$(call say,ar $@) rm -f $@ && ar rcs $@ $^

$(B)/mve: $(mve_objs) $(lib_objs)
	$(call say,ld $@) $(CC) $(CFLAGS) $^ $(LDLIBS) -o $@

$(B)/engine/ship/%.o: engine/ship/%.c
	@mkdir -p $(@D)
	$(call say,cc $<) $(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

$(B)/mve-ship: $(ship_objs) $(lib_objs)
	$(call say,ld $@) $(CC) $(CFLAGS) $^ -lnats -ljansson -lpthread -o $@

# The inside: freestanding, position independent, without vector registers,
# linked into one image that the monitor copies into a program.
INSIDE_CFLAGS := -std=gnu17 -O2 -g $(NAMES) $(WARN) -ffreestanding -nostdlib -fPIC \
	-fvisibility=hidden -mgeneral-regs-only -fno-stack-protector \
	-fcf-protection=none -fno-delete-null-pointer-checks -fno-tree-loop-distribute-patterns \
	-fasynchronous-unwind-tables -mno-red-zone -include engine/inside/poison.h
CORE_INSIDE := table ring away holds walk sent record match rules
inside_objs := $(call obj,$(INSIDE)) $(patsubst %,$(B)/engine/inside/core/%.o,$(CORE_INSIDE))

$(B)/engine/inside/core/%.o: engine/core/%.c
	@mkdir -p $(@D)
	$(call say,cc $< for the inside) $(CC) -I. $(INSIDE_CFLAGS) -MMD -MP -c $< -o $@

$(B)/engine/inside/%.o: engine/inside/%.c
	@mkdir -p $(@D)
	$(call say,cc $<) $(CC) -I. $(INSIDE_CFLAGS) -MMD -MP -c $< -o $@

$(B)/engine/inside/%.o: engine/inside/%.S
	@mkdir -p $(@D)
	$(call say,cc $<) $(CC) -I. -g -MMD -MP -c $< -o $@

$(B)/inside.elf: $(inside_objs) engine/inside/inside.ld engine/inside/inside.map
	$(call say,ld $@) $(CC) -nostdlib -shared -Wl,-Bsymbolic -Wl,-z,max-page-size=4096 \
		-Wl,-z,noexecstack -Wl,--hash-style=both -Wl,--eh-frame-hdr \
		-Wl,-soname=linux-vdso.so.1 -Wl,--build-id=sha1 \
		-Wl,--no-undefined -Wl,--version-script=engine/inside/inside.map \
		-Wl,-T,engine/inside/inside.ld $(inside_objs) -o $@
	@tools/check-inside $@

$(B)/inside.blob.o: $(B)/inside.elf
	@cd $(B) && ld -r -b binary -z noexecstack inside.elf -o inside.blob.o && \
		objcopy --set-section-alignment .data=16 inside.blob.o

# The rule compiler: scanner and parser are made, the contract is pasted in.
rulec_objs := $(patsubst rulec/%.c,$(B)/rulec-obj/%.o,$(wildcard rulec/*.c rulec/*/*.c)) \
	$(B)/rulec-obj/header.o $(call obj,grammar/rules.tab.c grammar/rules.lex.c \
	engine/core/table.c engine/core/rules.c engine/outside/print/xlat.c)
RULEC_CPPFLAGS := $(CPPFLAGS) -I$(B)/grammar

$(B)/grammar/rules.tab.c $(B)/grammar/rules.tab.h &: grammar/rules.y
	@mkdir -p $(@D)
	$(call say,bison $<) bison -Wall -Werror -o $(B)/grammar/rules.tab.c --header=$(B)/grammar/rules.tab.h $<

$(B)/grammar/rules.lex.c: grammar/rules.l
	@mkdir -p $(@D)
	$(call say,flex $<) flex -o $@ $<

$(B)/grammar/%.o: $(B)/grammar/%.c $(B)/grammar/rules.tab.h
	$(call say,cc $<) $(CC) $(RULEC_CPPFLAGS) -std=gnu17 -O2 -g -Wall -Wextra -Werror -MMD -MP -c $< -o $@

$(B)/rulec-obj/%.o: rulec/%.c | $(B)/grammar/rules.tab.h
	@mkdir -p $(@D)
	$(call say,cc $<) $(CC) $(RULEC_CPPFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

$(B)/rulec-obj/header.o: rulec/emit/header.S engine/abi/rules.h rulec/emit/find.h
	@mkdir -p $(@D)
	@$(CC) -c $< -o $@

$(B)/rulec: $(rulec_objs)
	$(call say,ld $@) $(CC) $(CFLAGS) $^ -o $@

# mve-xform reads two builds' types; files of transforms are in the rules' language.
xform_objs := $(call obj,$(wildcard engine/xform/*.c engine/xform/*.S) engine/outside/session/near.c) \
	$(filter-out $(B)/rulec-obj/main.o,$(rulec_objs))

$(B)/engine/xform/%.o: engine/xform/%.c | $(B)/grammar/rules.tab.h
	@mkdir -p $(@D)
	$(call say,cc $<) $(CC) $(RULEC_CPPFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

$(B)/engine/xform/header.o: engine/xform/header.S engine/update/xform.h
	@mkdir -p $(@D)
	@$(CC) -c $< -o $@

$(B)/mve-xform: $(xform_objs)
	$(call say,ld $@) $(CC) $(CFLAGS) $^ -ldw -lelf -o $@

# What runs a server that can be updated, and offers it engine/update/update.h.
update_objs := $(call obj,$(wildcard engine/update/*.c engine/update/state/*.c))

$(B)/engine/update/%.o: engine/update/%.c
	@mkdir -p $(@D)
	$(call say,cc $<) $(CC) $(CPPFLAGS) $(CFLAGS) -fno-builtin -MMD -MP -c $< -o $@

$(B)/mve-driver: $(update_objs)
	$(call say,ld $@) $(CC) $(CFLAGS) $^ -rdynamic -pthread -o $@

# eBPF: CO-RE objects with a skeleton each.
$(B)/vmlinux.h:
	@mkdir -p $(@D)
	@bpftool btf dump file /sys/kernel/btf/vmlinux format c > $@.tmp && mv $@.tmp $@

$(B)/bpf/%.bpf.o: bpf/%.bpf.c $(wildcard bpf/*.h) $(B)/vmlinux.h
	@mkdir -p $(@D)
	$(call say,bpf $<) $(CLANG) -O2 -g -target bpf -D__TARGET_ARCH_x86 -I$(B) -I. -Wall -Werror -c $< -o $@

$(B)/bpf/%.skel.h: $(B)/bpf/%.bpf.o
	@bpftool gen skeleton $< > $@.tmp && mv $@.tmp $@

# Memory checkpoints: a plugin for clang, a runtime for each size of region (of which only the
# usual one is made unasked), and the compiler that uses both.  The runtime's heap is built with
# the pass.
LLVM_DEV := $(wildcard /usr/lib/llvm-19/include/llvm/Passes/PassPlugin.h)
CHECK	:= engine/checkpoint
pass	:= $(call obj,$(wildcard $(CHECK)/pass/*.cc))
runtime	:= $(notdir $(basename $(wildcard $(CHECK)/runtime/*.[cS] $(CHECK)/ways/*.c \
	$(CHECK)/seam/*.c)))
RUNTIME_CFLAGS := -std=gnu17 -O2 -g $(NAMES) $(WARN) -fPIE

$(B)/$(CHECK)/pass/%.o: $(CHECK)/pass/%.cc
	@mkdir -p $(@D)
	$(call say,c++ $<) $(CXX) -I. -isystem /usr/lib/llvm-19/include -std=c++17 -O2 $(NAMES) -fPIC \
		-fno-exceptions -fno-rtti -Wall -Wextra -Wshadow -Werror -MMD -MP -c $< -o $@

$(B)/checkpoint/mve-checkpoint.so: $(pass)
	@mkdir -p $(@D)
	$(call say,ld $@) $(CXX) -shared -Wl,-z,nodelete $^ -o $@

define runtime_of
$(B)/checkpoint/libmve-checkpoint-$(1).a: $(runtime:%=$(B)/$(CHECK)/runtime-$(1)/%.o)
	@mkdir -p $$(@D)
	$$(call say,ar $$@) rm -f $$@ && ar rcs $$@ $$^

$(B)/$(CHECK)/runtime-$(1)/%.o: $(CHECK)/runtime/%.c
	@mkdir -p $$(@D)
	$$(call say,cc $$< $(1)) $(CLANG) $(CPPFLAGS) $(RUNTIME_CFLAGS) -DREGION_BYTES=$(1) -MMD -MP -c $$< -o $$@

$(B)/$(CHECK)/runtime-$(1)/%.o: $(CHECK)/ways/%.c
	@mkdir -p $$(@D)
	$$(call say,cc $$< $(1)) $(CLANG) $(CPPFLAGS) $(RUNTIME_CFLAGS) -DREGION_BYTES=$(1) -MMD -MP -c $$< -o $$@

$(B)/$(CHECK)/runtime-$(1)/%.o: $(CHECK)/seam/%.c
	@mkdir -p $$(@D)
	$$(call say,cc $$< $(1)) $(CLANG) $(CPPFLAGS) $(RUNTIME_CFLAGS) -DREGION_BYTES=$(1) -MMD -MP -c $$< -o $$@

$(B)/$(CHECK)/runtime-$(1)/%.o: $(CHECK)/runtime/%.S
	@mkdir -p $$(@D)
	$$(call say,cc $$< $(1)) $(CLANG) $(CPPFLAGS) -MMD -MP -c $$< -o $$@

$(B)/$(CHECK)/runtime-$(1)/heap.o: $(CHECK)/runtime/heap.c $(B)/checkpoint/mve-checkpoint.so
	@mkdir -p $$(@D)
	$$(call say,cc $$< $(1)) CCACHE_DISABLE=1 MVE_CHECKPOINT_FLAGS=region=$(1),unmarked $(CLANG) $(CPPFLAGS) $(RUNTIME_CFLAGS) \
		-fpass-plugin=$(B)/checkpoint/mve-checkpoint.so -DREGION_BYTES=$(1) -MMD -MP -c $$< -o $$@
endef
$(foreach n,32 64 128 256 512,$(eval $(call runtime_of,$(n))))

$(B)/checkpoint/mve-cc: $(CHECK)/mve-cc $(wildcard $(CHECK)/mve/*.h)
	@mkdir -p $(@D)/include/mve && cp $(CHECK)/mve/*.h $(@D)/include/mve && cp $< $@
	@ln -sf mve-cc $(@D)/mve-c++

$(B)/checkpoint/mve-lead: $(CHECK)/link/lead.c
	@mkdir -p $(@D)
	$(call say,cc $<) $(CLANG) $(CPPFLAGS) -std=gnu17 -O2 $(WARN) $< -o $@

checkpoint: $(if $(LLVM_DEV),$(B)/checkpoint/mve-checkpoint.so $(B)/checkpoint/libmve-checkpoint-128.a \
	$(B)/checkpoint/mve-lead $(B)/checkpoint/mve-cc)
	$(if $(LLVM_DEV),,@echo "mve-cc is not built: llvm-19-dev is missing")

# Tests.
programs := $(patsubst tests/programs/%.c,$(B)/tests/%,$(wildcard tests/programs/*.c))
$(B)/tests/%: tests/programs/%.c $(wildcard tests/programs/*.h)
	@mkdir -p $(@D)
	$(call say,cc $<) $(CC) -std=gnu17 -O1 -g -Wall -D_GNU_SOURCE -I. $< $(or $(shell sed -n 's,^/\* ld: \(.*\) \*/$$,\1,p' $<),-pthread) -o $@

units	:= $(patsubst tests/unit/%.c,$(B)/unit/%,$(wildcard tests/unit/*.c))
$(B)/unit/%: tests/unit/%.c $(lib_objs) $(wildcard tests/unit/*.h)
	@mkdir -p $(@D)
	$(call say,cc $<) $(CC) $(CPPFLAGS) $(CFLAGS) $< $(lib_objs) $(LDLIBS) -lcriterion -o $@

# The ring's two sides at once: watched by ThreadSanitizer, and left alone.
rings	:= $(B)/tests/ring_threads $(B)/tests/ring_threads_tsan
$(rings): tests/model/ring_threads.c $(wildcard engine/core/ring.[ch] engine/core/holds.[ch] engine/core/away.[ch] engine/outside/spill/chunks.[ch] engine/abi/*.h)
	@mkdir -p $(@D)
	$(call say,cc $@) $(CC) $(CPPFLAGS) $(CFLAGS) $(if $(findstring tsan,$@),-fsanitize=thread) $< -pthread -o $@

# What tests/programs/footprint.py and steps.py measure with.
footprint := $(B)/perf/idle $(B)/perf/record $(B)/perf/steps

# A web server with a planted bug, and what is to find it.
httpds	:= $(B)/servers/httpd $(B)/servers/httpd-asan
httpds: $(httpds)
$(httpds): $(wildcard servers/httpd/*.[ch])
	@mkdir -p $(@D)
	$(call say,cc $@) $(CC) -std=gnu17 -g $(WARN) -D_GNU_SOURCE $(if $(findstring asan,$@),-O1 -fno-omit-frame-pointer -fsanitize=address,-O2) $(filter %.c,$^) -lbz2 -o $@

units: $(units)

tests: $(B)/mve $(B)/rulec $(if $(NATS),$(B)/mve-ship) $(B)/mve-xform $(B)/mve-driver checkpoint $(programs) $(units) $(rings) $(footprint) $(httpds)

demo: deps
	@$(MAKE) --no-print-directory -j2 all
	@servers/demo

check: deps
	@$(MAKE) --no-print-directory -j2 tests
	@tests/run

check-long: deps
	@$(MAKE) --no-print-directory -j2 tests
	@tests/run --long

# The monitor, the command line and rulec under a sanitizer; the inside is as ever, for it
# has no libc. Leaks are not looked for: what ends with the program is not given back.
sanitized_cflags = -std=gnu17 -O1 -g -fno-omit-frame-pointer -fno-sanitize-recover=all \
	-fsanitize=$(if $(findstring asan,$@),address,undefined)

check-asan check-ubsan: deps
	@$(MAKE) --no-print-directory -j2 tests
	@$(MAKE) --no-print-directory -j2 B=$(B)/$(@:check-%=%) \
		CFLAGS="$(sanitized_cflags)" all units
	@tests/sanitized $(B)/$(@:check-%=%)

bench: deps
	@$(MAKE) --no-print-directory -j2 $(B)/mve bench-programs
	@perf/bench

bench_programs := $(patsubst perf/%.c,$(B)/perf/%,$(wildcard perf/*.c))
bench-programs: $(bench_programs)
$(B)/perf/%: perf/%.c | $(skels)
	@mkdir -p $(@D)
	$(call say,cc $<) $(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP $< -lbpf -pthread -o $@

$(B)/perf/ends: perf/ends.c
	@mkdir -p $(@D)
	$(call say,cc $<) $(CC) $(CFLAGS) -static $< -o $@

clean:
	rm -rf $(B)

.PHONY: all checkpoint deps demo check check-long check-asan check-ubsan units bench bench-programs httpds tests clean
.DELETE_ON_ERROR:
.SECONDARY:
-include $(shell find $(B)/engine $(B)/rulec-obj $(B)/grammar $(B)/perf -name '*.d' 2>/dev/null)
