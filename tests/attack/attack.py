#!/usr/bin/env python3
"""attack.py ATTACK[:COUNT]...: a worker of another uid turns against its root server, its
session and a stranger's process (server.c), alone and with a follower.  Whatever it does,
the server goes on serving with its code and data whole, the monitor answers, and nobody
but the session's own processes ends."""
import errno
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.append(ROOT + "/tests/servers")
from free_port import free_port     # noqa: E402

MVE = os.environ.get("MVE", os.path.join(ROOT, "build/mve"))
LOGS = {"take": "take", "pose": "take", "deafen": "take"}
TRIES = 8       # where what is attacked may be over before the worker is
LIMIT_S = int(os.environ.get("LIMIT_S", "120"))


class Wrong(Exception):
    pass


def expect(condition, text):
    if not condition:
        raise Wrong(text)


class Client:
    def __init__(self, port):
        limit = time.monotonic() + LIMIT_S
        while True:
            try:
                self.socket = socket.create_connection(("127.0.0.1", port), LIMIT_S)
                return
            except OSError:
                expect(time.monotonic() < limit, "the server does not begin")
                time.sleep(0.05)

    def ask(self, line):
        self.socket.sendall(line.encode() + b"\n")
        reply = b""
        while not reply.endswith(b"\n"):
            more = self.socket.recv(1000)
            expect(more, f"{line}: the connection is closed")
            reply += more
        return reply.decode().strip()


def run(name, *words):
    return subprocess.run([MVE, *words, name], capture_output=True, text=True, timeout=LIMIT_S,
                          check=False)


def worker_wait(client):
    """Until the worker is done; a request at a time all the while.  Its wait status."""
    limit, n = time.monotonic() + LIMIT_S, 0
    while True:
        n += 1
        expect(client.ask(str(n)) == str(n + 1), f"request {n}: a wrong answer")
        status = int(client.ask("over"))
        if status >= 0:
            return status
        expect(time.monotonic() < limit, "the worker does not end")
        time.sleep(0.0002)


def hold(name, client, how):
    status = worker_wait(client)
    # Who has not taken over in time is ended.
    expect(how in ("fuzz", "pose", "take", "wake", "deafen") or status == 0, f"the worker ended with {status:#x}")
    expect(client.ask("check") == "whole", "the server's memory has changed")
    expect(client.ask("exec") == "0", "the server cannot start a program")
    shown = run(name, "status")
    expect(shown.returncode == 0, f"mve status: {shown.stderr.strip()}")


def stopped_is(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] == "T"


def processes(command):
    """Those that run it."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if file.read().startswith("\0".join(command).encode() + b"\0"):
                    found.append(int(pid))
        except OSError:
            pass
    return found


def ended(command):
    limit = time.monotonic() + LIMIT_S
    while processes(command):
        expect(time.monotonic() < limit, f"left running: {processes(command)}")
        time.sleep(0.05)


def redirect(name, client, folder, followers):
    """The worker waits until another version leads: only that one translates ids."""
    for _ in range(followers):
        done = subprocess.run([MVE, "promote", name, "f1"], capture_output=True, text=True,
                              timeout=LIMIT_S, check=False)
        expect(done.returncode == 0, f"promote: {done.stderr.strip()}")
    for word in ("GO", "DONE"):
        open(f"{folder}/{word}", "w").close()
        time.sleep(0.2)
        client.ask("term")


def taken_once(log):
    """Who asks for descriptors gets them once, whatever it asks; and if they cannot be sent to it,
    as the worker has it, it gets none and ends alone.  False: neither was to be seen."""
    asks = re.findall(r"(\d+) asks .*\n.*\]: (-?\d+) descriptors sent after (\d+) us", log)
    served = [pid for pid, n, _ in asks if -int(n) not in (errno.EPERM, errno.EALREADY)]
    expect(len(served) > 1, f"nobody takes: {asks}")
    expect(len(set(served)) == len(served), f"one takes more than once: {asks}")
    late = sum(int(us) for *_, us in asks) / 1000000
    expect(late < 10, f"the monitor was held up for {late} s")
    return len(asks) > len(served) or "of the leader has: " in log


def take(client, name, folder, followers, how):
    """While the worker asks for what is being taken over, the leader crashes.  False: it was
    over before the worker could ask again."""
    again = not followers
    for _ in range(followers):
        client.ask("1")
        time.sleep(0.5)
        shown = json.loads(run(name, "status", "--json").stdout)
        os.kill(shown["server"], signal.SIGSEGV)
        for n in range(20):
            expect(client.ask(str(n)) == str(n + 1), "a wrong answer")
            time.sleep(0.1)
        limit = time.monotonic() + LIMIT_S
        while " leads (" not in open(f"{folder}/stderr").read():
            expect(time.monotonic() < limit, "the takeover has no end")
            time.sleep(0.1)
        again |= how != "take" or taken_once(open(f"{folder}/stderr").read())
    open(f"{folder}/DONE", "w").close()
    return again


def stand(client, name, folder, followers):
    """What the worker's slots say keeps nobody from being replaced, as was asked for."""
    client.ask("1")
    time.sleep(0.3)
    for _ in range(followers):
        done = subprocess.run([MVE, "promote", name, "f1"], capture_output=True, text=True,
                              timeout=LIMIT_S, check=False)
        expect(done.returncode == 0, f"promote: {done.stderr.strip()}")
    open(f"{folder}/DONE", "w").close()


def heir(client, name, folder, followers):
    """What the section says makes no leader of a version that has been replaced."""
    limit = time.monotonic() + LIMIT_S
    while not os.path.exists(f"{folder}/BEGUN"):
        expect(time.monotonic() < limit, "the worker does not begin")
        time.sleep(0.05)
    for _ in range(followers):
        old = json.loads(run(name, "status", "--json").stdout)["server"]
        done = subprocess.run([MVE, "promote", name, "f1", "--keep"], capture_output=True,
                              text=True, timeout=LIMIT_S, check=False)
        expect(done.returncode == 0, f"promote: {done.stderr.strip()}")
        limit = time.monotonic() + LIMIT_S
        while sockets := [fd for fd in os.listdir(f"/proc/{old}/fd")
                          if "socket:" in os.readlink(f"/proc/{old}/fd/{fd}")]:
            expect(time.monotonic() < limit, f"the old leader has kept {sockets}")
            time.sleep(0.1)
        expect(client.ask("7") == "8", "a wrong answer")
    open(f"{folder}/DONE", "w").close()


def starve(client, name, folder):
    """While the worker asks in every slot, what others ask is served."""
    for _ in range(5):
        expect(client.ask("exec") == "0", "the server cannot start a program")
        expect(run(name, "status").returncode == 0, "mve status has no answer")
    open(f"{folder}/DONE", "w").close()


def mire(client, name, folder):
    """Who asks by memory that does not answer waits alone: the server, the monitor and whoever
    comes to them do not."""
    limit = time.monotonic() + LIMIT_S
    while not os.path.exists(f"{folder}/BEGUN") or not os.path.getsize(f"{folder}/BEGUN"):
        expect(time.monotonic() < limit, "the worker does not begin")
        time.sleep(0.05)
    for _ in range(8):
        status = client.ask("exec")
        expect(status == "0", f"the server cannot start a program: {status}")
        expect(run(name, "status").returncode == 0, "mve status has no answer")
        time.sleep(0.1)
    open(f"{folder}/DONE", "w").close()


def attack(binary, folder, how, count, followers, number):
    name = "%s-%d" % (os.environ.get("MVE_SESSION", f"t-{os.getpid()}"), number)
    victim = subprocess.Popen(["sleep", "1000"])
    if how == "wake":
        victim.send_signal(signal.SIGSTOP)
    port = free_port()
    command = [binary, str(port), how, str(victim.pid), count]
    mve = subprocess.Popen([MVE, "run", "-n", name, *["-f", "same"][:2 * followers],
                            "--", *command], stderr=open(f"{folder}/stderr", "w"), cwd=folder,
                           env=dict(os.environ, MVE_LOG=LOGS.get(how, "")))
    shown = True
    try:
        client = Client(port)
        if how == "redirect":
            redirect(name, client, folder, followers)
        if how in ("take", "pose", "wake", "deafen"):
            shown = take(client, name, folder, followers, how)
        if how == "stand":
            stand(client, name, folder, followers)
        if how == "heir":
            heir(client, name, folder, followers)
        if how in ("starve", "crowd"):
            starve(client, name, folder)
        if how == "mire":
            mire(client, name, folder)
        hold(name, client, how)
        stopped = run(name, "stop")
        expect(stopped.returncode == 0, f"mve stop: {stopped.stderr.strip()}")
        mve.wait(LIMIT_S)
        expect(victim.poll() is None, "a stranger's process has ended")
        expect(how != "wake" or stopped_is(victim.pid), "a stranger's process was let go on")
        ended(command)
        return shown
    finally:
        victim.kill()
        victim.wait()
        run(name, "stop", "--kill")  # also what it left behind
        if mve.poll() is None:
            mve.kill()
            mve.wait()


def main():
    folder = tempfile.mkdtemp(prefix="mve-attack-", dir="/tmp")
    binary, number = f"{folder}/server", 0
    subprocess.run(["gcc", "-O1", "-g", "-D_GNU_SOURCE", "-I", ROOT, "-o", binary,
                    *[f"{ROOT}/tests/attack/{part}.c" for part in ("server", "code", "mire")]],
                   check=True)
    os.chmod(folder, 0o755)
    for word in sys.argv[1:]:
        how, _, count = word.partition(":")
        for followers in (0, 1):
            print(f"{word}, {followers} followers")
            try:
                for _ in range(TRIES):
                    number += 1
                    own = f"{folder}/{number}"
                    os.mkdir(own)
                    if attack(binary, own, how, count or "0", followers, number):
                        break
                else:
                    raise Wrong("what it is to show was never met")
            except (Wrong, OSError, subprocess.TimeoutExpired) as why:
                print(f"{why}\n--- stderr\n" + open(f"{own}/stderr").read())
                return 1
    shutil.rmtree(folder)
    print("attack: ok")
    return 0


if __name__ == "__main__":
    sys.exit(main())
