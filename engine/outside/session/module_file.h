/*
 * The files of a module, for libdwfl: what a process runs names them, and whoever wrote that.
 */
#ifndef MVE_OUTSIDE_MODULE_FILE_H
#define MVE_OUTSIDE_MODULE_FILE_H

#include <elfutils/libdwfl.h>

/* Dwfl_Callbacks.find_elf and .find_debuginfo: a descriptor, or -1. */
int module_elf_find(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
		    char **file, Elf **elf);
int module_debug_find(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
		      const char *file, const char *link, GElf_Word crc, char **found);

#endif
