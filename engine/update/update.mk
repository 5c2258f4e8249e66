# For the Makefile of a server that can be updated: SERVER.so from its objects.
#
#	MVE := /path/to/mve
#	include $(MVE)/engine/update/update.mk
#	server-2.so: main.c table.c
#		$(CC) $(UPDATE_CFLAGS) $^ $(UPDATE_LDFLAGS) -o $@
#
# Every build needs a name of its own: the old one stays mapped while the new one runs.
MVE ?= $(abspath $(dir $(lastword $(MAKEFILE_LIST)))/../..)
UPDATE_CFLAGS := -g -fPIC -I$(MVE) -pthread
UPDATE_LDFLAGS := -shared -Wl,-Bsymbolic -Wl,-z,now -Wl,--build-id=sha1
