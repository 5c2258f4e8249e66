"""Requests are counted where --mark says that they begin, in leader and follower."""
import json
import os
import subprocess

from session import MVE, NAME, Session, must

WANT = 7


def program(mark, *options, want=WANT):
    run = subprocess.run([MVE, "run", "-n", NAME, "-f", "same", "--status", "s.json", "--mark",
                          mark, *options, "--", f"{os.environ['TESTS']}/requests"],
                         capture_output=True, timeout=30)
    must(run.returncode == 0 and b"requests: ok" in run.stdout, run)
    with open("s.json", encoding="utf-8") as file:
        status = json.load(file)
    for v in status["versions"]:
        must(v["requests"] == want and not v["verdicts"], mark, v)
    opens = next(c for c in status["calls"]["by_name"] if c["name"] == "openat")
    must(opens["patch"] + opens["trap"] >= 2 * WANT, opens)


def call():
    session = Session("-f", "same", "--mark", "accept")
    before = session.version("v0")["requests"]
    for _ in range(WANT):
        session.get()
    session.steady("f1")
    for name in "v0", "f1":
        got = session.version(name)["requests"] - before
        must(got == WANT, "by call:", name, got)
    session.stop()


def server():
    """A function of the server's, several times in a connection."""
    session = Session("-f", "same", "--mark", "request_parse")
    client = session.connect()
    for _ in range(WANT):
        client.get()
    client.close()
    session.steady("f1")
    for name in "v0", "f1":
        got = session.version(name)["requests"]
        must(got == WANT, "by a function:", name, got)
    session.stop()


for how in "/no/such/path/mve-request", "request_plain", "request_any":
    program(how)
    program(how, "--tier=trap")
program("request_any", "--mark", "request_plain", want=2 * WANT)
call()
server()
print("marks: ok")
