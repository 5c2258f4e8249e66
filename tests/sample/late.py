"""mve follow: a follower comes to a server under load, again and again; the leader
never loses a request, and each join succeeds or says why not.

late.py SERVER JOINS [kill]: with `kill` every other follower is killed or stopped
(SIGKILL, SIGSTOP) at some time of its way, and at the end the monitor is."""
import os
import random
import signal
import subprocess
import sys
import threading
import time

from session import MVE, NAME, Session, fail, httpd, must, nginx, within

SERVER, JOINS, KILL = sys.argv[1], int(sys.argv[2]), sys.argv[3:] == ["kill"]
RANDOM = random.Random(5)


class Load(threading.Thread):
    """Connections that stay open for many requests, beside others for one."""

    def __init__(self, session):
        super().__init__(daemon=True)
        self.session, self.over, self.wrong, self.done = session, False, None, 0
        self.rests = False

    def run(self):
        try:
            kept = [self.session.connect() for _ in range(4)]
            while not self.over:
                if self.rests:
                    time.sleep(0.01)
                    continue
                for client in kept:
                    client.get()
                    self.session.get()
                    self.done += 2
                if self.done % 200 < 8:
                    kept.pop(0).close()
                    kept.append(self.session.connect())
            for client in kept:
                client.close()
        except BaseException as wrong:  # told by the main thread
            self.wrong = repr(wrong)


def follow(session, name, **options):
    return subprocess.Popen([MVE, "follow", NAME, "--name", name, "--", *session.server],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def told(load, before, why):
    must(within(20, lambda: load.done > before + 20 or load.wrong) and not load.wrong,
         f"{why}: the leader loses requests: {load.wrong}")


def joined(session, load, name):
    asked = follow(session, name)
    out, err = asked.communicate(timeout=60)
    must(asked.returncode == 0, name, "does not join:", out, err)
    # On a machine that is very busy it may only be ready by now.
    must(within(60, lambda: session.version(name)["role"] == "follower"), name,
         "is ready and does not join:", session.version(name), load.done, load.wrong)
    told(load, load.done, name)
    # Beside requests without end a busy machine's follower would never be done.
    load.rests = True
    session.steady(name)
    load.rests = False
    v = session.version(name)
    must(v["requests"] > 0, name, "was told of no request:", v)


def killed(session, load, name):
    """At any time: while it starts, reads the start, joins, or follows."""
    asked = follow(session, name)
    time.sleep(RANDOM.random() * 0.3)
    v = session.version(name)
    how = RANDOM.choice([signal.SIGKILL, signal.SIGSTOP])
    if v and v["alive"]:
        os.kill(v["pid"], how)
    if how == signal.SIGSTOP:  # nobody waits for it; what it does not read is dropped
        told(load, load.done, name + " was stopped")
        asked.kill()
        asked.communicate()
        return
    out, err = asked.communicate(timeout=60)
    must(asked.returncode in (0, 1), name, asked.returncode, out, err)
    must(asked.returncode == 0 or "mve: cannot follow" in err, name, "says nothing:", out, err)
    told(load, load.done, name + " was killed")


def gone(session, name):
    subprocess.run([MVE, "drop", NAME, name], capture_output=True, timeout=20)
    if not within(10, lambda: not [v for v in session.status()["versions"]
                                   if v["role"] != "ended" and v["name"] != "v0"]):
        fail(name, "is not gone:", session.status()["versions"])


def monitor_killed(session, load):
    """In the middle of a join: the server goes on without."""
    asked = follow(session, "last")
    time.sleep(0.1)
    server = session.status()["server"]
    os.kill(session.mve.pid, signal.SIGKILL)
    session.mve.wait(10)
    for _ in range(3):
        told(load, load.done, "the monitor was killed")
        time.sleep(0.3)
    load.over = True
    load.join(20)
    asked.kill()
    asked.communicate()
    subprocess.run([MVE, "stop", NAME], capture_output=True, timeout=20)
    must(within(10, lambda: not alive(server)), "the server does not end")


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
        return ") Z" not in stat.read()


def main():
    session = Session("--stateless", "--mark", "epoll_wait", "--ring", "4M" if KILL else "64M",
                      command={"httpd": httpd, "nginx": nginx}[SERVER])
    session.get()
    load = Load(session)
    load.start()
    time.sleep(2)  # its start is over
    for i in range(JOINS):
        name = f"late{i}"
        if KILL and i % 2:
            killed(session, load, name)
        else:
            joined(session, load, name)
        gone(session, name)
    if KILL:
        monitor_killed(session, load)
        must(not load.wrong, "a request was lost:", load.wrong)
        print(f"late_{SERVER}_killed: ok")
        return
    load.over = True
    load.join(20)
    must(not load.wrong, "a request was lost:", load.wrong)
    now = session.status()
    must(now["versions"][0]["role"] == "leader", now["versions"])
    session.stop()
    print(f"{JOINS} joins, {load.done} requests", file=sys.stderr)
    print(f"late_{SERVER}: ok")


main()
