#!/usr/bin/env python3
"""Updates the threaded kv from version 1 to 2 in place, while clients ask it.

  kv.py [TIMES]
  kv.py chain TIMES
  kv.py held TIMES

held: the server runs under mve run, in both tiers.

chain: one server goes from 1 to 2 and back so many times, with a refused update before each, and
serves new clients, too: its locals, the socket that it listens on, go along each time.
Else each time: numbered requests of several clients go on across the update, none is lost or wrong
and no connection is closed; a dry run changes nothing; then the new commands are there, and
each entry is what a new server is that was given the same.
"""
import shutil
import sys
import tempfile

import served
from load import Load

CLIENTS = 4
ENTRIES = 2000


def entries_are(server, natively):
    """Entry by entry what a server of the new version was given."""
    a, b = server.client(), natively.client()
    for i in range(ENTRIES):
        b.expect(f"PUT key-{i} value {i}", "OK")
    for i in range(ENTRIES):
        for verb in ("GET", "TYPE"):
            a.expect(f"{verb} key-{i}", b.ask(f"{verb} key-{i}"))


def update(old, new, xform, *before):
    with served.Server(old, *before) as server, served.Server(new) as natively:
        first = server.client()
        for i in range(ENTRIES):
            first.expect(f"PUT key-{i} value {i}", "OK")
        loads = [Load(server, i) for i in range(CLIENTS)]
        for load in loads:
            load.start()
        status, said = server.order("dry", new, xform)
        assert status == 0 and "struct entry: " in said and "made anew" in said, said
        first.expect("TYPE key-1", "ERROR unknown request")
        status, said = server.order("update", new, xform, "20000")
        assert status == 0, said
        before = [load.done for load in loads]
        entries_are(server, natively)
        first.expect("PUT-date day today", "OK")
        first.expect("TYPE day", "TYPE date")
        for load, done in zip(loads, before):
            load.goes_on(done)
            load.stop()
        status, said = server.order("update", new, xform)
        assert status == 1 and "runs already" in said, said
        return sum(load.done for load in loads)


def chain(builds, xforms, work, times):
    """Each build under a new name: the one before stays mapped."""
    with served.Server(builds[0]) as server:
        first = server.client()
        for i in range(ENTRIES):
            first.expect(f"PUT key-{i} value {i}", "OK")
        loads = [Load(server, i) for i in range(CLIENTS)]
        for load in loads:
            load.start()
        for n in range(times):
            new = shutil.copy(builds[(n + 1) % 2], f"{work}/new-{n}.so")
            status, said = server.order("update", new, xforms[(n + 1) % 2])
            assert status == 1 and "not from the build that runs" in said, said
            status, said = server.order("update", new, xforms[n % 2], "20000")
            assert status == 0, said
            before = [load.done for load in loads]
            for i in range(0, ENTRIES, 7):
                first.expect(f"GET key-{i}", f"VALUE value {i}")
            first.expect("TYPE key-1", "ERROR unknown request" if n % 2 else "TYPE string")
            server.client().expect("GET key-1", "VALUE value 1")
            for load, done in zip(loads, before):
                load.goes_on(done)
        for load in loads:
            load.stop()
    print(f"update_kv: {times} updates of one server")


def main():
    chained = sys.argv[1:2] == ["chain"]
    times = int(sys.argv[-1]) if len(sys.argv) > 1 else 3
    folder = f"{served.ROOT}/servers/kv/threads"
    with tempfile.TemporaryDirectory() as work:
        old = served.build(f"{folder}/v1.c", f"{work}/v1.so")
        new = served.build(f"{folder}/v2.c", f"{work}/v2.so")
        status, said = served.xform(old, new, f"{work}/x.so", f"{folder}/v1-v2.xf")
        assert status == 0, said
        if chained:
            status, said = served.xform(new, old, f"{work}/y.so", f"{folder}/v2-v1.xf")
            assert status == 0, said
            chain((old, new), (f"{work}/x.so", f"{work}/y.so"), work, times)
            print("update_kv: ok")
            return
        tiers = ([f"{served.BIN}/mve", "run", f"--tier={tier}", "--"] for tier in
                 ("patch", "trap")) if sys.argv[1:2] == ["held"] else ([],)
        done = [update(old, new, f"{work}/x.so", *tier) for tier in tiers
                for _ in range(times)]
    assert all(done)
    print("update_kv: ok")


main()
