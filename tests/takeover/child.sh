#!/bin/sh
# With --failover error a leader's end with an error is a failover, a child's is not:
# its parent sees it, as it does natively.
. "$ROOT/tests/lib.sh"

leads()
{
	"$MVE" status "$MVE_SESSION" --json >now.json 2>/dev/null &&
		python3 - "$1" <<'EOF'
import json, sys
for v in json.load(open("now.json"))["versions"]:
    if v["role"] == "leader":
        sys.exit(v["name"] != sys.argv[1])
sys.exit(1)
EOF
}

has()
{
	[ -s "$1" ]
}

mkfifo input
"$MVE" run -n "$MVE_SESSION" --failover error -f same -- \
	sh -c '(exit 3); (exit 4); echo $? >children; read x; read y; exit 5' \
	>out 2>err <input &
run=$!
exec 3>input
within 10 has children || fail "no children: $(cat err)"
echo x >&3
leads v0 || fail "a child's end was a failover: $(cat now.json err)"
[ "$(cat children)" = 4 ] || fail "the child: $(cat children)"
exec 3>&-
wait "$run"
[ $? = 5 ] || fail "status: $(cat err)"
grep -q "f1 leads (v0 exited with status 5)" err || fail "no failover: $(cat err)"
clean
echo "child: ok"
