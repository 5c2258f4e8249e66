#!/usr/bin/env python3
"""Small pairs of programs: the state that the old one made, migrated, is shown by the new one as
a new one shows what it made itself.

  pairs.py [CASE...]

A case is a file of pairs/, built with and without NEW.  Lines in it: `// xf: ...` is its
transform file, `// refused: TEXT` says that mve-xform must refuse it with that text, and
`// stays: TEXT` that the update is refused when it is asked for, and the old one serves on;
`// says: TEXT` is in what the update says.
"""
import os
import sys
import tempfile

import served

FOLDER = f"{served.ROOT}/tests/update/pairs"


def said(text, word):
    mark = f"// {word}:"
    return [line[len(mark):].removeprefix(" ") for line in text.split("\n")
            if line.startswith(mark)]


def show(server):
    server.process.stdin.write("x\n")
    server.process.stdin.flush()
    lines = []
    while not lines or lines[-1] != ".\n":
        lines.append(server.process.stdout.readline())
        assert lines[-1], f"it ended: {lines} {server.process.stderr.read()}"
    return "".join(lines)


def case(name, work):
    with open(f"{FOLDER}/{name}.c") as f:
        text = f.read()
    says, refused, stays, tells = (said(text, w) for w in ("xf", "refused", "stays", "says"))
    include = ("-include", f"{FOLDER}/frame.h")
    old = served.build(f"{FOLDER}/{name}.c", f"{work}/{name}-1.so", *include)
    new = served.build(f"{FOLDER}/{name}.c", f"{work}/{name}-2.so", *include, "-DNEW")
    xf = f"{work}/{name}.xf"
    with open(xf, "w") as f:
        f.write("\n".join(says) + "\n")
    status, words = served.xform(old, new, f"{work}/{name}-x.so", xf)
    if refused:
        assert status == 1 and refused[0] in words, words
        assert not os.path.exists(f"{work}/{name}-x.so"), "an object in spite of errors"
        return
    assert status == 0, words
    with served.Server(old) as server:
        before = show(server)
        status, words = server.order("update", new, f"{work}/{name}-x.so", "20000")
        if stays:
            assert status == 1 and stays[0] in words, words
            assert show(server) == before, "it is another after a refused update"
            return
        assert status == 0, words
        for one in tells:
            assert one in words, words
        got = show(server)
        assert got == show(server), "it is another when it is shown again"
    with served.Server(new) as natively:
        want = show(natively)
    assert got == want, f"migrated:\n{got}made by the new one:\n{want}"


def main():
    names = sys.argv[1:] or sorted(n[:-2] for n in os.listdir(FOLDER) if n.endswith(".c"))
    bad = []
    with tempfile.TemporaryDirectory() as work:
        for name in names:
            try:
                case(name, work)
            except AssertionError as wrong:
                bad.append(name)
                print(f"{name}: {wrong}")
    assert names and not bad, bad
    print(f"update_pairs: {len(names)} pairs")
    print("update_pairs: ok")


main()
