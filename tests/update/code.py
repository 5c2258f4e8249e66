#!/usr/bin/env python3
"""Updates that change nothing but code: no word is said of the state, whose pointers into the
build lead into the new one, wherever they stand; by a twin and in place.

Where a type is another the transformation is refused, with the place in both sources.
"""
import json
import os
import signal
import sys
import tempfile

import load
import served

SOURCE = f"{served.ROOT}/tests/update/code.c"


def asked(client, build, n, handled):
    client.expect("job", f"{build} job {n}")
    client.expect("call", f"{build} second {n}")
    client.expect("signals", f"{build} signals {handled}")
    client.expect("table", "old first 0" if build == "old" else "new second 0")


def signals(server, pid, client, build, handled):
    os.kill(pid, signal.SIGUSR1)
    load.until(lambda: client.ask("signals") == f"{build} signals {handled}",
               lambda: f"no handler of the {build} build")


def by_twin(old, new):
    name = f"code-{load.unique()}"

    def mve(verb, *words):
        return served.run(f"{served.BIN}/mve", verb, name, *words)[1]

    def status():
        return json.loads(mve("status", "--json"))

    with served.Server(old, f"{served.BIN}/mve", "run", "-n", name, "--") as server:
        first = server.client()
        asked(first, "old", 1, 0)
        signals(server, status()["server"], first, "old", 3)
        said = mve("update", "--to", new, "--code")
        assert "only code is new" in said, said
        # The builds' names differ: the twin's answers do.  Until it leads nobody asks.
        mve("promote")
        load.until(lambda: status()["update"]["stage"] == "new leads", status)
        mve("commit")
        load.until(lambda: status()["update"]["stage"] == "alone", status)
        second = server.client()
        asked(first, "new", 2, 3)
        asked(second, "new", 3, 3)
        signals(server, status()["server"], first, "new", 6)


def in_place(old, new, xform):
    with served.Server(old) as server:
        first = server.client()
        asked(first, "old", 1, 0)
        signals(server, server.process.pid, first, "old", 3)
        code, said = server.order("update", new, xform, "20000")
        assert code == 0 and "only code is new" in said, said
        second = server.client()
        asked(first, "new", 2, 3)
        asked(second, "new", 3, 3)
        signals(server, server.process.pid, first, "new", 6)


def main():
    with tempfile.TemporaryDirectory() as work:
        old = served.build(SOURCE, f"{work}/old.so")
        new = served.build(SOURCE, f"{work}/new.so", "-DNEW", "-O1")
        if "unlike" in sys.argv[1:]:
            old = served.build(SOURCE, f"{work}/old-unlike.so", "-DUNLIKE")
            new = served.build(SOURCE, f"{work}/new-unlike.so", "-DUNLIKE", "-DNEW")
            code, said = served.run(f"{served.BIN}/mve-xform", "-c", old, new, ok=False)
            assert code == 1 and said.count("code.c:") == 1, (code, said)
            assert "`struct unlike` is another in the new build" in said, said
            assert "say so: transform struct unlike { }" in said, said
            says = f"{work}/says.xf"
            for body, text in (("", ""), ("b = 1;", "nothing becomes of `unlike`")):
                with open(says, "w") as f:
                    f.write(f"transform struct unlike {{ {body} }}\n")
                code, said = served.run(f"{served.BIN}/mve-xform", "-c", "-t", says, old, new,
                                        ok=False)
                assert code == bool(text) and text in said, (code, said)
        elif "place" in sys.argv[1:]:
            code, said = served.run(f"{served.BIN}/mve-xform", "-c", "-o", f"{work}/x.so", old,
                                    new, ok=False)
            assert code == 0, said
            in_place(old, new, f"{work}/x.so")
        else:
            by_twin(old, new)
    print("update_code: ok")


main()
