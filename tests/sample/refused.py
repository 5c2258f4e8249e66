"""mve follow where it cannot be: a clear word, and the session goes on as it was."""
import os
import shutil
import subprocess
import time

from session import MVE, NAME, ROOT, Session, must, within


def refused(session, code, text, *words):
    asked = subprocess.run([MVE, "follow", NAME, *words], capture_output=True, timeout=100,
                           text=True)
    lines = asked.stderr.splitlines()
    must(asked.returncode == code and len(lines) == 2 and text in lines[0] and
         lines[0].startswith("mve: ") and lines[1].startswith("hint: "),
         words, asked.returncode, asked.stdout, asked.stderr, "expected:", code, text)
    session.get()
    now = session.status()["versions"]
    must(now[0]["role"] in ("leader", "solo") and
         within(10, lambda: all(v["role"] == "ended" for v in session.status()["versions"][1:])),
         words, "has left", now)


def session_of(*options):
    session = Session(*options)
    session.get()
    return session


def waits():
    """The leader's start is not over when it is asked: that passes, and is waited for."""
    session = Session("--stateless", "--mark", "epoll_wait")
    asked = subprocess.Popen([MVE, "follow", NAME, "--name", "early", "--", *session.server],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(0.5)
    must(asked.poll() is None, "does not wait:", asked.communicate())
    session.get()
    out, err = asked.communicate(timeout=60)
    must(asked.returncode == 0 and "early" in out, "has not followed:", out, err)
    must(err.count("waits up to") == 1 and "start is not over" in err, "not said:", err)
    session.stop()


def main():
    waits()
    session = session_of("--status", "s.json")
    refused(session, 1, "--stateless", "--", *session.server)
    session.stop()
    session = session_of("--stateless")
    refused(session, 1, "--mark", "--", *session.server)
    session.stop()
    session = session_of("--stateless", "--mark", "recvmsg")  # none that it makes
    refused(session, 1, "start is not over", "--wait", "0", "--", *session.server)
    session.stop()
    session = session_of("--stateless", "--mark", "epoll_wait", "--ring", "1M")
    time.sleep(1.5)
    refused(session, 1, "give the program", "--")
    refused(session, 2, "--wrong", "--wrong", "--", *session.server)
    refused(session, 127, "/no/such", "--", "/no/such")
    with open("unreadable", "w", encoding="utf-8") as text:
        text.write("no program")
    os.chmod("unreadable", 0o755)
    refused(session, 126, "neither a program", "--", os.path.abspath("unreadable"))
    shutil.copy("/bin/true", "valgrind")
    refused(session, 2, "Valgrind", "--", os.path.abspath("valgrind"), *session.server)
    refused(session, 2, "no/such.rules", "--rules", "no/such.rules", "--", *session.server)
    with open("wrong.rules", "w", encoding="utf-8") as text:
        text.write("this is no rule\n")
    asked = subprocess.run([MVE, "follow", NAME, "--rules", "wrong.rules", "--", *session.server],
                           capture_output=True, timeout=100, text=True)
    must(asked.returncode == 1 and "wrong.rules:1:6: error" in asked.stderr, asked.stderr)
    refused(session, 1, "the name is in use", "--name", "v0", "--", *session.server)
    refused(session, 1, "not a follower's name", "--name", "a/b", "--", *session.server)
    with open("script", "w", encoding="utf-8") as text:
        text.write("#!/bin/sh\nexec " + " ".join(session.server) + "\n")
    os.chmod("script", 0o755)
    refused(session, 1, "a shell runs it", "--", os.path.abspath("script"))
    refused(session, 126, "directory", "--", "/etc")
    # Another program, and the same on another port: both differ in the start.
    refused(session, 1, "diverged", "--", "/bin/cat", "/etc/hostname")
    refused(session, 1, "diverged", "--", session.server[0], "1", session.server[2])
    refused(session, 1, "", "--", "/bin/false")
    asked = subprocess.run([MVE, "follow", NAME, "--name", "words", "--", "/bin/ls", "--no-such"],
                           capture_output=True, timeout=100, text=True)
    log = asked.stderr.split()[-5]
    must(asked.returncode == 1 and os.path.exists(log), asked.stderr)
    asked = subprocess.run([MVE, "follow", NAME, "--name", "one", "--rules",
                            f"{ROOT}/rules/redis/info.rules", "--", *session.server],
                           capture_output=True, timeout=100, text=True)
    must(asked.returncode == 0, asked.stdout, asked.stderr)
    again = subprocess.run([MVE, "follow", NAME, "--name", "one", "--", *session.server],
                           capture_output=True, timeout=100, text=True)
    must(again.returncode == 1 and "the name is in use" in again.stderr, again.stderr)
    promoted = subprocess.run([MVE, "promote", NAME, "one"], capture_output=True, timeout=100,
                              text=True)
    must(promoted.returncode == 1 and "all connections" in promoted.stderr, promoted.stderr)
    session.get()
    session.steady("one")
    session.stop()
    print("refused: ok")


main()
