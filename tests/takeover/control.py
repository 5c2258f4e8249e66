#!/usr/bin/env python3
"""control.py deaf|followers|slow|versions|stranger|rules: who speaks with the monitor, and how slowly, is
nothing to the server.

deaf: nobody reads what mve says, in a pipe that is full.
slow: connections that send a byte now and then, or never read their answer, are open while
the leader dies, a program starts and the session is asked: all go on at once.
versions: no process of a session may use its socket, whatever became of its family.
followers: nor by calls that nothing holds.
stranger: neither may another user, where he gets as far as that.
rules: a pipe in the place of rules, or in that of an object, holds up nobody.
"""
import array
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from load import Load, Wrong
from session import MVE, Session, free_port, kv_build, listens

ASK = r"""
import json, os, socket, sys
def ask(how):
    s = socket.socket(socket.AF_UNIX)
    s.connect(os.environ["CONTROL"])
    try:
        s.sendall(json.dumps({"do": "promote", "follower": "f1"}).encode())
        s.shutdown(socket.SHUT_WR)
    except OSError:
        pass
    print(how, s.recv(4096).decode(), flush=True)
    s.close()
def child(work):
    pid = os.fork()
    if not pid:
        work()
        os._exit(0)
    os.waitpid(pid, 0)
def orphan():
    r, w = os.pipe()
    if not os.fork():
        os.close(w)
        os.read(r, 1)       # until its parent has ended
        os.setsid()
        ask("orphan")
        os._exit(0)
    os.close(r)
    os._exit(0)
if len(sys.argv) > 1:
    ask("program")
    sys.exit()
ask("first")
child(lambda: ask("child"))
child(lambda: os.execv(sys.executable, [sys.executable, sys.argv[0], "again"]))
r, w = os.pipe()
if not os.fork():
    orphan()
os.wait()
os.close(w)
os.read(r, 1)               # closed when the orphan, too, has ended
"""


def control(name):
    return f"{os.environ['XDG_RUNTIME_DIR']}/mve/{name}/control"


def connect(name):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(10)
    s.connect(control(name))
    return s


def answer(s):
    text = b""
    try:
        while part := s.recv(65536):
            text += part
    except ConnectionResetError:        # it did not want the rest of the request
        pass
    return json.loads(text)


def ask(name, request, fds=()):
    s = connect(name)
    s.sendmsg([json.dumps(request).encode()],
              [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else [])
    s.shutdown(socket.SHUT_WR)
    return answer(s)


def expect(have, text):
    if text not in json.dumps(have):
        raise Wrong(f"no {text!r} in {have}")


def slow():
    session = Session("kv", 2)
    try:
        load = session.load()
        load.more(100)
        begun = [connect(session.name) for _ in range(6)]
        for s in begun[:3]:
            s.sendall(b"{")
        idle = connect(session.name)
        idle.sendall(b'{"do": "status"}')
        idle.shutdown(socket.SHUT_WR)           # whose answer nobody reads
        status = session.status()
        expect(status, "versions")
        os.kill(session.leader()["pid"], signal.SIGSEGV)
        for turn in range(100):                 # 50 s of a loop that waits for each byte
            for s in begun[:3]:
                try:
                    s.sendall(b" ")
                except OSError:
                    pass
            if session.leader()["name"] != "v0":
                break
            time.sleep(0.5)
        else:
            raise Wrong("nobody has taken over")
        load.more(100)
        more = [connect(session.name) for _ in range(80)]
        expect(session.status(), "versions")
        session.wait_for(session.following, "one follows still")
        session.promote(session.following()[0])
        load.more(100)
        big = connect(session.name)
        try:
            big.sendall(b"[" * (5 << 20))
        except OSError:
            pass
        expect(answer(big), "too long")
        for junk in (b"", b"[]", b"{}", b'{"do": 7}', b"\xff\xfe", b'{"do": "follow", "argv": 3}',
                     b'{"do": "promote"}', b'{"do": "rules", "follower": "v0"}'):
            s = connect(session.name)
            s.sendall(junk)
            s.shutdown(socket.SHUT_WR)
            expect(answer(s), "error")
        for s in begun + more + [idle]:
            s.close()
        print(f"slow: {load.stop()} replies")
        session.stop()
    finally:
        session.clean()


def run_asking(options, script):
    name = f"{os.environ['MVE_SESSION']}-a"
    env = dict(os.environ, CONTROL=control(name))
    done = subprocess.run([MVE, "run", "-n", name, *options, "--", sys.executable, script],
                          capture_output=True, text=True, env=env, timeout=60)
    lines = done.stdout.strip().splitlines()
    if len(lines) != 4:
        raise Wrong(f"{done.stdout}\n{done.stderr}")
    for line in lines:
        expect(line, "by a process of the session")
    if " leads (" in done.stderr:
        raise Wrong(done.stderr)


def versions():
    with tempfile.NamedTemporaryFile("w", suffix=".py") as script:
        script.write(ASK)
        script.flush()
        run_asking([], script.name)
        run_asking(["-f", "same"], script.name)
    print("versions: refused")


def followers():
    """By calls that nothing holds, which a follower makes for itself as its leader does."""
    name, out = f"{os.environ['MVE_SESSION']}-f", os.path.abspath("answers")
    open(out, "w").close()
    done = subprocess.run([MVE, "run", "-n", name, "-f", "same", "--",
                           f"{os.environ['TESTS']}/asks", control(name), "f1", out],
                          capture_output=True, text=True, timeout=60)
    with open(out) as file:
        lines = file.read().splitlines()
    doctor = subprocess.run([MVE, "doctor"], capture_output=True, text=True).stdout
    known = [l for l in lines if l.startswith("first")]
    if any(l.startswith("ok ") and " cgroup " in l for l in doctor.splitlines()):
        known = lines
    if sum(l.startswith("first") for l in lines) != 2 or " leads (" in done.stderr or \
            any("by a process of the session" not in l for l in known):
        raise Wrong(f"{lines}\n{done.stdout}{done.stderr}")
    print(f"{len(lines)} asked, {len(known)} of them known")


def stranger():
    session = Session("kv", 1)
    folder = os.path.dirname(control(session.name))
    try:
        # As if the folders had been opened by mistake.
        way = folder
        while way != "/" and os.stat(way).st_uid == 0 and os.stat(way).st_mode & 0o5 != 0o5:
            os.chmod(way, 0o755)
            way = os.path.dirname(way)
        os.chmod(control(session.name), 0o777)
        done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                               sys.executable, "-c", ASK, "again"], capture_output=True, text=True,
                              env=dict(os.environ, CONTROL=control(session.name)), timeout=30)
        expect(done.stdout, "another user's session")
        # What is open to others is not believed by its owner either.
        done = subprocess.run([MVE, "status", session.name], capture_output=True, text=True)
        expect(done.stderr, "open to other users")
        os.chmod(folder, 0o700)
        os.chmod(os.path.dirname(folder), 0o700)
        expect(session.status(), "versions")
        session.stop()
        print("stranger: refused")
    finally:
        os.path.isdir(folder) and os.chmod(folder, 0o700)
        os.chmod(os.path.dirname(folder), 0o700)
        session.clean()


def rules():
    session = Session("kv", 1)
    pipe = session.folder + "/pipe.so"
    os.mkfifo(pipe)
    try:
        load = session.load()
        for path in (pipe, session.folder, "/dev/zero", "/dev/tty", session.folder + "/none.so"):
            done = subprocess.run([MVE, "rules", session.name, "f1", path], capture_output=True,
                                  text=True, timeout=10)
            if done.returncode not in (1, 2):
                raise Wrong(f"{path}: {done.returncode} {done.stderr}")
        for kind in ("rules", "follow"):
            request = {"do": kind, "follower": "f1", "object": pipe, "rules": pipe,
                       "path": "/bin/true", "argv": ["true"]}
            expect(ask(session.name, request), "error")
            r, w = os.pipe()
            expect(ask(session.name, request, [r]), "not sealed" if kind == "rules" else "error")
            with open(session.folder + "/file.so", "w+b") as file:
                file.write(b"\x7fELF" * 99)
                file.flush()
                expect(ask(session.name, request, [file.fileno()]), "error")
        load.more(100)
        session.promote("f1")
        load.more(100)
        print(f"rules: {load.stop()} replies")
        session.stop()
    finally:
        session.clean()


def deaf():
    """Nobody reads what mve says, and its pipe is full: the takeovers go on."""
    folder = tempfile.mkdtemp(prefix="mve-deaf-")
    port, name = free_port(), f"{os.environ['MVE_SESSION']}-d"
    r, w = os.pipe()
    os.set_blocking(w, False)
    try:
        while os.write(w, b"x" * 4096):
            pass
    except BlockingIOError:
        os.set_blocking(w, True)
    mve = subprocess.Popen([MVE, "run", "-n", name, "-f", "same", "-f", "same", "--",
                            kv_build(folder), str(port)], stdin=subprocess.DEVNULL,
                           stdout=subprocess.DEVNULL, stderr=w)

    def rows():
        return json.loads(subprocess.run([MVE, "status", name, "--json"], capture_output=True,
                                         timeout=20).stdout or "{}").get("versions", [])

    def wait_for(leader, followers):
        for _ in range(400):
            roles = [v["role"] for v in rows()]
            if roles.count("follower") == followers and (roles[0] == "leader") != leader \
                    and listens(port):
                return
            time.sleep(0.05)
        raise Wrong(f"{roles}: not {followers} followers")

    try:
        wait_for(False, 2)
        load = Load(port, "kv")
        load.more(50)
        os.kill(next(v["pid"] for v in rows() if v["role"] == "leader"), signal.SIGSEGV)
        load.more(50)
        wait_for(True, 1)
        os.kill(next(v["pid"] for v in rows() if v["role"] == "follower"), signal.SIGKILL)
        wait_for(True, 0)
        load.more(50)
        print(f"deaf: {load.stop()} replies")
        mve.terminate()
        mve.wait(20)
    finally:
        if mve.poll() is None:
            subprocess.run([MVE, "stop", name, "--kill"], capture_output=True)
            mve.wait(20)
        shutil.rmtree(folder, ignore_errors=True)


def main():
    try:
        {"deaf": deaf, "followers": followers, "slow": slow, "versions": versions, "stranger": stranger, "rules": rules}[sys.argv[1]]()
    except Wrong as e:
        raise SystemExit(f"{sys.argv[1]}: {e}")
    print("control: ok")


if __name__ == "__main__":
    main()
