#!/usr/bin/env python3
"""release.py: servers/kv's next release follows from the start, by its rules, and leads.

The session has told some rings by then; others come while it catches up.  What the old release
was told the new one knows, and then has the words that only it understands.
"""
import json
import subprocess

from waits import LONG, MVE, NAME, ROOT, connect, fail, free_port, waited

KEYS, AGAIN = 500, 12000


def mve(*words):
    p = subprocess.run([MVE, *words], capture_output=True, text=True)
    if p.returncode:
        fail(f"{words}: {p.returncode}: {p.stdout}{p.stderr}")
    return p.stdout


def build(name):
    subprocess.run(["gcc", "-D_GNU_SOURCE", "-g", f"{ROOT}/servers/kv/{name}.c", "-o", name],
                   check=True)


class Client:
    def __init__(self, port):
        self.file = waited(lambda: connect(port), "the server listens").makefile("rw")

    def ask(self, line, answer):
        self.file.write(line + "\n")
        self.file.flush()
        got = self.file.readline().rstrip("\r\n")
        if got != answer:
            fail(f"{line}: {got!r}, not {answer!r}")

    def puts(self, first, n):
        for i in range(first, first + n):
            self.ask(f"PUT key{i % KEYS} value{i}", "OK")


def follower():
    status = json.loads(mve("status", NAME, "--json"))
    return next(v for v in status["versions"] if v["name"] == "new"), status["ring"]


def is_caught_up():
    v, _ = follower()
    if v["role"] not in ("follower", "starting"):
        fail(f"the new release does not follow: {v}")
    return v["role"] == "follower" and not v["lag_cells"]


def main():
    build("v1")
    build("v2")
    port = free_port()
    with open("server.log", "ab") as log:
        session = subprocess.Popen([MVE, "run", "-n", NAME, "--ring", "1M", "--from-start",
                                    "--log-max", "512M", "--full-ms", "20000", "--", "./v1",
                                    str(port)], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    c = Client(port)
    c.puts(0, AGAIN)
    mve("follow", NAME, "--name", "new", "--from-start", "--rules",
        f"{ROOT}/rules/kv/kv.rules", "--", "./v2", str(port))
    c.puts(AGAIN, 300)
    waited(is_caught_up, "it catches up")
    if follower()[1]["spill"]["written"] < 1 << 20:
        fail("hardly a ring was told before")
    mve("promote", NAME, "new", "--wait")
    last = AGAIN + 300
    for i in range(last - KEYS, last):
        c.ask(f"GET key{i % KEYS}", f"VALUE value{i}")
    c.ask("PUT-number n 12", "OK")
    c.ask("TYPE n", "TYPE number")
    session.terminate()
    session.wait(LONG)
    print("release: ok")


main()
