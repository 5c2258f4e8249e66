#!/bin/sh
# Redis that is asked for INFO while it works, as monitoring does: what it says of its
# memory is forgiven by rules/redis/info.rules.
. "$ROOT/tests/follow/lib.sh"
need redis-server python3

launch -f same --rules "$ROOT/rules/redis/info.rules" -- \
	redis-server --port "$port" --bind 127.0.0.1 --dir "$folder" --save ''
up
client info_load "$port" "$seconds"
clients_end
leave "$(cat info_load.out) requests"
