#!/usr/bin/env python3
"""leaves.py: mve comes to servers that are not as others, and leaves them: nothing of it stays in
them, they serve on, and what cannot be left is said to be so, by the status, too.

jit: code is made at run time.  replaced: the program's file is another one by now, as after an
upgrade.  mounts: it sees other files than we do.  forbids: it may have no descriptors.  program:
it executes one after mve has come, which is left, too.  elsewhere: it is in another
pid namespace, and refused."""
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile

from left import is_left
from server import MVE, Server, WAIT_S, Wrong, wait_for
from session import kv_build

HERE = os.path.dirname(os.path.abspath(__file__))
REPLIES = 60


def mapped(pid):
    with open(f"/proc/{pid}/maps") as maps:
        return maps.read().count("memfd:mve-")


def detach(server):
    wait_for(server.left, "it is left", 60)


def comes_and_leaves(server):
    load = server.load(pause=0.001)
    load.more(REPLIES)
    server.attach()
    load.more(REPLIES)
    detach(server)
    load.more(REPLIES)
    server.check()
    load.stop()
    if mapped(server.pid):
        raise Wrong(f"{mapped(server.pid)} mappings are left")


def jit():
    with tempfile.TemporaryDirectory(prefix="mve-attach-", dir="/tmp") as folder:
        subprocess.run(["gcc", "-O1", "-o", folder + "/jit", HERE + "/jit.c"], check=True)
        program = subprocess.Popen([folder + "/jit"], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True)
        program.stdout.readline()
        name = "%s-jit" % os.environ.get("MVE_SESSION", f"t-{os.getpid()}")
        mve = subprocess.Popen([MVE, "attach", "-n", name, str(program.pid)],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True)
        try:
            line = mve.stdout.readline()
            if "holds pid" not in line:
                raise Wrong(f"mve attach: {line}")
            subprocess.run([MVE, "detach", name], check=True, stdout=subprocess.DEVNULL)
            mve.wait(WAIT_S)
            words = program.communicate("", timeout=WAIT_S)[0]
        finally:
            for process in (mve, program):
                if process.poll() is None:
                    process.kill()
                process.wait()
        if program.returncode or "ended well" not in words:
            raise Wrong(f"jit: {program.returncode} {words}")


def with_server(what, *under):
    server = Server("kv", under=under)
    try:
        what(server)
        server.stop()
    finally:
        server.clean()


def replaced(server):
    kv = kv_build(server.folder)
    shutil.copy(kv, kv + ".new")
    os.rename(kv + ".new", kv)
    comes_and_leaves(server)


def forbids(server):
    _, most = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
    load = server.load(pause=0.001, churn=0)    # none comes anew
    load.more(REPLIES)
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (0, most))
    server.attach()
    load.more(REPLIES)
    detach(server)
    load.more(REPLIES)
    load.stop()
    if mapped(server.pid):
        raise Wrong("mappings are left")


def program():
    """A shell that waits for lines, and executes each."""
    shell = subprocess.Popen(["sh"], stdin=subprocess.PIPE, text=True)
    name = "%s-sh" % os.environ.get("MVE_SESSION", f"t-{os.getpid()}")
    mve = subprocess.Popen([MVE, "attach", "-n", name, str(shell.pid)],
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True)
    try:
        if "holds pid" not in mve.stdout.readline():
            raise Wrong("mve attach")
        shell.stdin.write("sleep 1000 & echo $! > pid; echo > there\n")
        shell.stdin.flush()
        wait_for(lambda: os.path.exists("there"), "the shell has begun it")
        with open("pid") as f:
            sleeper = int(f.read())
        wait_for(lambda: "sleep" in open(f"/proc/{sleeper}/comm").read(), "it is executed")
        done = subprocess.run([MVE, "detach", name], capture_output=True, text=True)
        if done.returncode:
            raise Wrong(f"mve detach: {done.returncode} {done.stderr}")
        mve.wait(WAIT_S)
        for pid in (shell.pid, sleeper):
            is_left(pid, {})
        os.kill(sleeper, signal.SIGTERM)
        shell.stdin.write("wait; echo > over\n")
        shell.stdin.flush()
        wait_for(lambda: os.path.exists("over"), "it has ended")
        shell.communicate("exit 7\n", timeout=WAIT_S)
        if shell.returncode != 7:
            raise Wrong(f"the shell: {shell.returncode}")
    finally:
        for process in (mve, shell):
            if process.poll() is None:
                process.kill()
            process.wait()


def elsewhere():
    outer = subprocess.Popen(["unshare", "-p", "-f", "sleep", "1000"])
    try:
        children = f"/proc/{outer.pid}/task/{outer.pid}/children"
        wait_for(lambda: open(children).read().strip(), "it is there")
        pid = open(children).read().split()[0]
        done = subprocess.run([MVE, "attach", pid], capture_output=True, text=True,
                              timeout=WAIT_S)
        if done.returncode != 1 or "another pid namespace" not in done.stderr:
            raise Wrong(f"mve attach: {done.returncode} {done.stderr}")
        os.kill(int(pid), signal.SIGKILL)
    finally:
        outer.kill()
        outer.wait()


def main():
    jit()
    with_server(replaced)
    with_server(forbids)
    program()
    if os.getuid():
        print("leaves: ok, but for namespaces", file=sys.stderr)
        return
    with_server(comes_and_leaves, "unshare", "-m")
    elsewhere()


try:
    main()
except Wrong as e:
    raise SystemExit(str(e))
print("leaves: ok")
