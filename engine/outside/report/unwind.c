/*
 * Unwinding and naming frames, by libdwfl.  Runs in a child of the monitor.
 *
 * libdwfl would stop the thread by ptrace and begin where it stands, which is in
 * mve's own code.  So it is told what it asks for: one thread, the registers at the
 * place where its walk is to begin, and its memory.
 */
#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/outside/report/stack_parts.h"
#include "engine/outside/session/module_file.h"

#define FRAMES_MAX	64

/* Registers by DWARF's numbers for x86-64. */
enum { DW_RBX = 3, DW_RBP = 6, DW_RSP = 7, DW_R12 = 12, DW_RA = 16 };

struct walk {
	Dwfl *dwfl;
	const struct stack_start *start;
	const struct stack_copy *copy;
	unsigned n;
	uint64_t pc;		/* this frame's, as its callee returns there */
	uint64_t place;		/* an address in the code that the frame is of */
	json_t *frames;
};

/* --- names ---------------------------------------------------------------------------- */

static json_t *frame_new(const struct walk *w, Dwfl_Module *mod, const char *module)
{
	GElf_Addr bias = 0;
	char pc[24], address[24];

	snprintf(pc, sizeof(pc), "0x%llx", (unsigned long long)w->pc);
	if (mod)
		dwfl_module_getelf(mod, &bias);
	snprintf(address, sizeof(address), "0x%llx", (unsigned long long)(w->place - bias));
	return json_pack("{s:s, s:s*, s:s}", "pc", pc, "module", module, "address", address);
}

static void place_add(json_t *frame, const char *file, int line)
{
	if (!file || line <= 0)
		return;
	json_object_set_new(frame, "file", json_string(file));
	json_object_set_new(frame, "line", json_integer(line));
}

/* Without what mve-cc calls a function's two bodies (engine/checkpoint/pass/bodies.cc). */
static size_t length_of(const char *name)
{
	static const char *const bodies[] = { ".checked", ".plain" };
	const char *dot = strrchr(name, '.');

	for (size_t i = 0; dot && i < sizeof(bodies) / sizeof(bodies[0]); i++)
		if (!strcmp(dot, bodies[i]))
			return (size_t)(dot - name);
	return strlen(name);
}

static void function_add(json_t *frame, const char *name)
{
	if (name)
		json_object_set_new(frame, "function", json_stringn(name, length_of(name)));
}

/* Where the code of an inlined function was called. */
static void call_place(Dwarf_Die *cu, Dwarf_Die *die, const char **file, int *line)
{
	Dwarf_Attribute a;
	Dwarf_Files *files;
	Dwarf_Word n;

	*file = NULL;
	*line = 0;
	if (!dwarf_formudata(dwarf_attr(die, DW_AT_call_file, &a), &n) &&
	    !dwarf_getsrcfiles(cu, &files, NULL))
		*file = dwarf_filesrc(files, n, NULL, NULL);
	if (!dwarf_formudata(dwarf_attr(die, DW_AT_call_line, &a), &n))
		*line = (int)n;
}

/* The scopes that hold a place, innermost first, as the code lies. */
static int scopes_find(Dwfl_Module *mod, Dwarf_Die *cu, uint64_t place, Dwarf_Die **scopes)
{
	Dwarf_Addr bias;
	Dwarf_Die *innermost, die;
	Dwarf *dw = dwfl_module_getdwarf(mod, &bias);
	int n = dwarf_getscopes(cu, place - bias, &innermost);

	if (n <= 0)
		return 0;
	if (!dwarf_offdie(dw, dwarf_dieoffset(&innermost[0]), &die))
		n = 0;
	free(innermost);
	return n ? dwarf_getscopes_die(&die, scopes) : 0;
}

/* One frame, and those inlined into it. */
static bool frames_by_dwarf(struct walk *w, Dwfl_Module *mod, const char *module)
{
	Dwfl_Line *src = dwfl_module_getsrc(mod, w->place);
	Dwarf_Addr bias;
	Dwarf_Die *cu = dwfl_module_addrdie(mod, w->place, &bias), *scopes = NULL;
	int line = 0, n = cu ? scopes_find(mod, cu, w->place, &scopes) : 0;
	const char *file = src ? dwfl_lineinfo(src, NULL, &line, NULL, NULL, NULL) : NULL;
	bool done = false;

	for (int i = 0; i < n && !done; i++) {
		int tag = dwarf_tag(&scopes[i]);
		json_t *frame;

		if (tag != DW_TAG_subprogram && tag != DW_TAG_inlined_subroutine)
			continue;
		frame = frame_new(w, mod, module);
		function_add(frame, dwarf_diename(&scopes[i]));
		place_add(frame, file, line);
		json_array_append_new(w->frames, frame);
		done = tag == DW_TAG_subprogram;
		if (done)
			break;
		json_object_set_new(frame, "inlined", json_true());
		call_place(cu, &scopes[i], &file, &line);
	}
	free(scopes);
	return done;
}

static void frames_add(struct walk *w)
{
	Dwfl_Module *mod = dwfl_addrmodule(w->dwfl, w->place);
	const char *module = NULL, *path = NULL;
	GElf_Off offset;
	GElf_Sym sym;
	json_t *frame;

	if (mod)
		module = dwfl_module_info(mod, NULL, NULL, NULL, NULL, NULL, &path, NULL);
	module = path ? path : module;
	if (mod && frames_by_dwarf(w, mod, module))
		return;
	frame = frame_new(w, mod, module);
	if (mod)
		function_add(frame, dwfl_module_addrinfo(mod, w->place, &offset, &sym, NULL,
							 NULL, NULL));
	json_array_append_new(w->frames, frame);
}

/* --- what libdwfl asks for ------------------------------------------------------------ */

static pid_t thread_next(Dwfl *dwfl, void *arg, void **state)
{
	const struct walk *w = arg;

	(void)dwfl;
	if (*state)
		return 0;
	*state = arg;
	return w->copy->pid;
}

static bool thread_get(Dwfl *dwfl, pid_t tid, void *arg, void **state)
{
	const struct walk *w = arg;

	(void)dwfl;
	*state = arg;
	return tid == w->copy->pid;
}

static bool word_read(Dwfl *dwfl, Dwarf_Addr at, Dwarf_Word *word, void *arg)
{
	const struct walk *w = arg;
	uint64_t from = at - w->copy->at;

	(void)dwfl;
	if (from < w->copy->len && w->copy->len - from >= sizeof(*word)) {
		memcpy(word, w->copy->bytes + from, sizeof(*word));
		return true;
	}
	return w->copy->memory >= 0 &&
	       pread(w->copy->memory, word, sizeof(*word), (off_t)at) == sizeof(*word);
}

/*
 * libdwfl takes the first place for one where the thread stands.  A place that is
 * returned to may be behind its function's end: the call before it is named instead.
 */
static bool registers_set(Dwfl_Thread *thread, void *arg)
{
	const struct walk *w = arg;
	const struct stack_start *from = w->start;
	const uint64_t *saved = from->saved;
	Dwarf_Word frame[] = { saved[SAVED_RBP], from->stack };
	Dwarf_Word high[] = { saved[SAVED_R12], saved[SAVED_R13], saved[SAVED_R14],
			      saved[SAVED_R15], from->place - !from->exact };

	return dwfl_thread_state_registers(thread, DW_RBX, 1, &saved[SAVED_RBX]) &&
	       dwfl_thread_state_registers(thread, DW_RBP, 2, frame) &&
	       dwfl_thread_state_registers(thread, DW_R12, 5, high);
}

static int frame_met(Dwfl_Frame *frame, void *arg)
{
	struct walk *w = arg;
	bool stands;

	if (!dwfl_frame_pc(frame, &w->pc, &stands) || !w->pc || w->n++ == FRAMES_MAX)
		return DWARF_CB_ABORT;
	w->place = w->pc - !stands;
	if (w->n == 1)
		w->pc = w->start->place;
	frames_add(w);
	return DWARF_CB_OK;
}

/* --- the walk ------------------------------------------------------------------------- */

static int modules_report(const struct walk *w)
{
	FILE *maps;
	int result;

	maps = fmemopen(w->copy->maps, w->copy->maps_len, "r");
	result = maps ? dwfl_linux_proc_maps_report(w->dwfl, maps) : -1;
	if (maps)
		fclose(maps);
	return result;
}

static bool begin(struct walk *w)
{
	static const Dwfl_Callbacks files = {
		.find_elf = module_elf_find,
		.find_debuginfo = module_debug_find,
	};
	static const Dwfl_Thread_Callbacks threads = {
		.next_thread = thread_next, .get_thread = thread_get,
		.memory_read = word_read, .set_initial_registers = registers_set,
	};

	w->dwfl = dwfl_begin(&files);
	return w->dwfl && !modules_report(w) &&
	       !dwfl_report_end(w->dwfl, NULL, NULL) &&
	       dwfl_attach_state(w->dwfl, NULL, w->copy->pid, &threads, w);
}

json_t *unwind(const struct stack_copy *copy)
{
	struct stack_start from = copy->start;
	struct walk w = { .start = &from, .copy = copy, .frames = json_array() };

	if (!from.place && word_read(NULL, from.stack, &from.place, &w))
		from.stack += 8;
	if (from.place && begin(&w))
		dwfl_getthread_frames(w.dwfl, copy->pid, frame_met, &w);
	return w.frames;
}
