# For the Makefile of a server that can be updated: SERVER.so from its objects.
#
#	MVE := /path/to/mve
#	include $(MVE)/engine/update/update.mk
#	server-2.so: main.c table.c
#		$(CC) $(UPDATE_CFLAGS) $^ $(UPDATE_LDFLAGS) -o $@
#
# Every build needs a name of its own: the old one stays mapped while the new one runs.
MVE ?= $(abspath $(dir $(lastword $(MAKEFILE_LIST)))/../..)
# Functions of one code would have one address, and in the next build perhaps two.
UPDATE_CFLAGS := -g -fPIC -fno-ipa-icf -I$(MVE) -pthread
UPDATE_LDFLAGS := -shared -Wl,-Bsymbolic -Wl,-z,now -Wl,--build-id=sha1

# For builds that are not make's.  The first target stays the Makefile's own.
update_goal := $(.DEFAULT_GOAL)
.PHONY: update-cflags update-ldflags
update-cflags:
	@echo $(UPDATE_CFLAGS)
update-ldflags:
	@echo $(UPDATE_LDFLAGS)
.DEFAULT_GOAL := $(update_goal)
