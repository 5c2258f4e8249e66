#!/bin/sh
# Faults in C are shown at their place in the rules file; no output is left.
. "$ROOT/tests/rules/lib.sh"

# says TEXT: the rules on standard input fail in C, and the message has TEXT.
says()
{
	cat >c.rules
	rm -f c.so
	timeout 60 "$RULEC" build c.rules -o c.so >out 2>err
	status=$?
	[ $status = 1 ] || fail "status $status: $(cat err)"
	[ -e c.so ] && fail "left an object"
	grep -qF -- "$1" err || fail "no \"$1\" in: $(cat err)"
}

says "c.rules:3:20: error: 'nofd' undeclared" <<'END'
getpid() => nothing
read(fd, _, _)
	{ return $(fd) == nofd; }
	=> nothing
END
says "c.rules:2:37: error: implicit declaration of function 'strlen'" <<'END'
// helpers of libc are not there
write(_, buf, _) { $(buf) == "x" || strlen("x") } => nothing
END
says "c.rules:1:42: error: incompatible types" <<'END'
write(_, buf, n) => write(_) -> { $(n) = "text"; }
END
says "c.rules:1:47: error: control reaches end" <<'END'
write(_, buf, n) { if ($(n) == 3) return 1; } => nothing
END
# Nothing of its own reaches the kernel.
says "c.rules:1:25: error: attempt to use poisoned \"__asm__\"" <<'END'
getuid() { int n = 186; __asm__ volatile ("syscall" : "+a"(n)); return n; } => nothing
END
cat >undefined.h <<'END'
int elsewhere(void);
END
# A regular expression in the file does not move it.
says "c.rules:2:19: error: 'nobody' undeclared" <<'END'
write(_, ~ /^a+(b|c)/, _) => nothing
write(fd, _, _) { nobody } => nothing
END
says "undefined reference to \`elsewhere'" <<'END'
#include "undefined.h"
getpid() { elsewhere() } => nothing
END
cat >pointers.h <<'END'
static const char *const names[] = { "a", "b" };
END
says "addresses in static data" <<'END'
#include "pointers.h"
write(_, _, n) { names[$(n) & 1][0] == 'a' } => nothing
END
says "no_such.h: No such file" <<'END'
#include "no_such.h"
getpid() => nothing
END
clean
