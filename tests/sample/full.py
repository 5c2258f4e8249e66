"""The ring fills while a follower's AddressSanitizer is at its report: the leader does
not wait for it, and what it finds is told all the same, not that it was behind."""
import os
import subprocess

from session import MVE, NAME, ROOT, Session, must, within

FLAGS = ["-g", "-O1", "-fno-omit-frame-pointer", "-pthread"]


def ask(session, *lines):
    client = session.connect()
    for line in lines:
        client.socket.sendall(line.encode())
        must(client.socket.recv(200) == line.encode(), "another reply than", line)
    client.close()


def server(port):
    for out, more in ("server", []), ("server-asan", ["-fsanitize=address"]):
        subprocess.run(["gcc", *FLAGS, *more, f"{ROOT}/tests/sample/threads.c", "-o", out],
                       check=True)
    return [os.path.abspath("server"), "each", str(port)]


def follow(session):
    command = [os.path.abspath("server-asan"), *session.server[1:]]
    return subprocess.run([MVE, "follow", NAME, "--name", "late", "--", *command],
                          capture_output=True, timeout=100, text=True)


def full(session):
    """What ends this is the ring, not the report: that takes seconds."""
    ask(session, "load")
    return session.status()["ring"]["waits"] > 0


def main():
    session = Session("--stateless", "--mark", "accept", "--ring", "1M",
                      "--when-full", "drop", command=server)
    ask(session, "first")
    must(within(20, lambda: follow(session).returncode == 0), "none comes:", follow(session))
    must(within(20, lambda: ask(session, "on") or session.version("late")["requests"] > 2),
         "hears of nothing")
    ask(session, "slow", "stale")
    must(within(20, lambda: full(session)), "the ring does not fill")
    must(within(60, lambda: session.version("late")["role"] == "ended"), "finds nothing")
    v = session.version("late")
    must(v["verdicts"] == {"found": 1}, v)
    shown = subprocess.run([MVE, "report", NAME], capture_output=True, timeout=20, text=True)
    must("heap-use-after-free in stale at threads.c" in shown.stdout and
         "slowstale" in shown.stdout, shown.stdout)
    ask(session, "served")
    session.stop()
    print("full: ok")


main()
