#!/usr/bin/env python3
"""Bad input of mve-xform and mve-driver: builds that are none, are stripped or damaged, files of
transforms that are none.  Each ends with its status and a word, and nothing is written.

  bad.py [DAMAGED]      so many builds with bytes changed at random (60)
"""
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile

import served

XFORM, DRIVER = f"{served.BIN}/mve-xform", f"{served.BIN}/mve-driver"


def says(code, text, *words):
    status, said = served.run(*words, ok=False)
    assert status == code and text in said, f"{words}: status {status}, not {code}: {said}"


def written(path, text):
    with open(path, "w") as f:
        f.write(text)
    return path


def builds(work):
    folder = f"{served.ROOT}/servers/kv/threads"
    return (served.build(f"{folder}/v1.c", f"{work}/1.so"),
            served.build(f"{folder}/v2.c", f"{work}/2.so"))


def xform_refuses(work, old, new):
    out = f"{work}/out.so"
    stripped = served.build(f"{served.ROOT}/servers/kv/threads/v2.c", f"{work}/3.so", "-g0")
    os.mkfifo(f"{work}/build.so")
    for text, bad in (("No such file", f"{work}/none"), ("no DWARF", stripped),
                      ("no regular file", f"{work}/build.so"),
                      ("no DWARF", written(f"{work}/text.so", "text")),
                      ("no shared object", f"{work}/object.o")):
        if bad.endswith(".o"):
            served.run("gcc", "-g", "-c", "-x", "c", written(f"{work}/o.c", "int x;"), "-o", bad)
        says(3, text, XFORM, "-o", out, old, bad)
        says(3, text, XFORM, "-o", out, bad, new)
    for code, text, body in (
            (1, "this `{` has no end", "transform struct entry { typ = 1;"),
            (1, "can not be transformed", "transform thing entry { typ = 1; }"),
            (1, "this is no line", "transform struct entry { = 4; }"),
            (1, "this is no line", "transform struct entry { typ = ; }"),
            (1, "no type stands here", "transform struct entry { key : ; }"),
            (1, "is no pointer", "transform struct entry { typ = 1; key : opaque; }"
             "transform struct client { fd : opaque; }"
             "transform thread serve { : struct client; }"),
            (1, "is no type of either build", "transform thread serve { : struct nobody; }"),
            (1, "did you mean `struct client`?", "transform thread serve { : struct clint; }"),
            (1, "did you mean `struct entry`?", "transform struct entri { typ = 1; }"),
            (1, "bad.xf:1:32: error: incompatible types", "transform struct entry { typ = \"x\"; }"
             "transform thread serve { : struct client; }"),
            (1, "bad.xf:2:25: error: control reaches end", "transform struct entry { typ = {\n"
             "if (old->key) return 1; } } transform thread serve { : struct client; }"),
            (1, "is out of place", "transform { }"),
            (1, "bad.xf:2:18: error: `entry` has a transform already",
             "transform struct entry { }\ntransform struct entry { typ = 1; }"),
            (1, "bad.xf:2:18: error: `serve` has a transform already",
             "transform thread serve { : struct client; }\n"
             "transform thread serve { : struct entry; }"),
            (1, "nothing is done with `nobody`",
             "transform struct entry { typ = 1; } transform variable nobody { *new = 1; }")):
        xf = written(f"{work}/bad.xf", body)
        says(code, text, XFORM, "-t", xf, "-o", out, old, new)
    says(3, "cannot read", XFORM, "-t", f"{work}/none.xf", old, new)
    says(3, "cannot compile", XFORM, "-t", f"{served.ROOT}/servers/kv/threads/v1-v2.xf",
         "-o", f"{work}/none/out.so", old, new)
    output_is_kept(work, old, new)
    says(2, "usage:", XFORM, old)
    says(2, "usage:", XFORM, "--nonsense", old, new)
    says(0, "usage:", XFORM, "--help")
    assert not os.path.exists(out)


def output_is_kept(work, old, new):
    """What is at the place of -o is no device, none of its own inputs, and no other file."""
    xf = written(f"{work}/said.so", "transform struct entry { typ = 1; }")
    os.mkfifo(f"{work}/fifo.so")
    os.symlink("/dev/null", f"{work}/null.so")
    os.link(new, f"{work}/same.so")
    for text, out in (("it is no file", f"{work}/fifo.so"), ("it is no file", f"{work}/null.so"),
                      ("one of the builds", old), ("one of the builds", f"{work}/same.so"),
                      ("of types", xf), ("neither FILE.so nor FILE.c", f"{work}/x.txt"),
                      ("neither FILE.so nor FILE.c", "/dev/null")):
        before = os.lstat(out) if os.path.lexists(out) else None
        says(2, text, XFORM, "-t", xf, "-o", out, old, new)
        after = os.lstat(out) if os.path.lexists(out) else None
        assert (before and (before.st_ino, before.st_mode, before.st_size)) == \
            (after and (after.st_ino, after.st_mode, after.st_size)), out


def driver_refuses(work, old):
    served.run("gcc", "-shared", "-fPIC", "-x", "c", written(f"{work}/m.c", "int x;"), "-o",
               f"{work}/nomain.so")
    says(127, "cannot load", DRIVER, f"{work}/none.so")
    says(127, "no main()", DRIVER, f"{work}/nomain.so")
    says(3, "too long", DRIVER, "-c", "/" + "x" * 200, old)
    says(3, "cannot listen", DRIVER, "-c", f"{work}/none/socket", old)
    says(3, "cannot reach", DRIVER, "-a", f"{work}/none", "update", "a", "b")
    says(2, "usage:", DRIVER)
    says(2, "usage:", DRIVER, "-r", "many", "-a", "x", "update")
    says(2, "usage:", DRIVER, "-a", "x", "update", old)
    says(2, "usage:", DRIVER, "-a", "x", "update", old, old, "5", "6")
    for word in ("", "0", "x", "5x", "-1", "+5", "3600001", "99999999999999999999"):
        says(2, "usage:", DRIVER, "-a", "x", "dry", old, old, word)


def socket_is_kept(work, old):
    """Only the socket of a server that has ended is another's."""
    says(3, "File exists", DRIVER, "-c", written(f"{work}/file", "mine"), old)
    with open(f"{work}/file") as f:
        assert f.read() == "mine"
    with served.Server(old) as server:
        says(3, "in use", DRIVER, "-c", server.control, old, "0")
        says(3, "cannot find: nowhere.so", DRIVER, "-a", server.control, "dry", "nowhere.so", old)
        says(1, "not from the build that runs", *[DRIVER, "-a", server.control, "dry"],
             f"{work}/2.so", f"{work}/back.so")
    left = f"{work}/left"
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(left)
    with served.Server(old, control=left) as server:
        says(1, "not from the build that runs", *[DRIVER, "-a", left, "dry"], f"{work}/2.so",
             f"{work}/back.so")
    assert server.process.returncode == -signal.SIGTERM, server.process.returncode
    assert not os.path.lexists(left), "the socket stays behind the server"
    with served.Server(old, control=left) as server:
        os.unlink(left)
        written(left, "another's")
    assert os.path.exists(left), "what is another's went with the server"


def damaged(work, old, new, times):
    """No signal ends it, and it ends."""
    chance = random.Random(17)
    with open(old, "rb") as f:
        whole = f.read()
    for n in range(times):
        data = bytearray(whole[:chance.randrange(1, len(whole))] if n % 4 == 0 else whole)
        for _ in range(chance.choice((1, 10, 300))):
            data[chance.randrange(len(data))] = chance.randrange(256)
        with open(f"{work}/damaged.so", "wb") as f:
            f.write(data)
        for pair in ((f"{work}/damaged.so", new), (new, f"{work}/damaged.so")):
            done = subprocess.run([XFORM, *pair], stdout=subprocess.PIPE, timeout=served.HANGS_S,
                                  stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
            assert done.returncode in (0, 1, 3), f"damaged build {n}: {done.returncode}"


def names_are_names(work):
    """Who wrote a build has the compiler read nothing: its names are names, or none."""
    said = b'x",1,2},{0}};__asm__(".incbin \\"/etc/hostname\\"");static struct xform_function y[]={{"'
    name = "f" * len(said)
    old = served.build(written(f"{work}/n.c", f"int n;\nint {name}(void)\n{{\n\treturn n;\n}}\n"),
                       f"{work}/n.so")
    with open(old, "rb") as f:
        data = f.read()
    assert name.encode() in data
    with open(old, "wb") as f:
        f.write(data.replace(name.encode(), said))
    says(0, "", XFORM, "-o", f"{work}/n.out.c", old, old)
    with open(f"{work}/n.out.c") as f:
        assert "incbin" not in f.read(), "a name of the build became C"


def main():
    times = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    with tempfile.TemporaryDirectory() as work:
        old, new = builds(work)
        xform_refuses(work, old, new)
        driver_refuses(work, old)
        xf = f"{served.ROOT}/servers/kv/threads/v2-v1.xf"
        says(0, "", XFORM, "-t", xf, "-o", f"{work}/back.so", new, old)
        socket_is_kept(work, old)
        names_are_names(work)
        damaged(work, old, new, times)
    print("update_bad: ok")


main()
