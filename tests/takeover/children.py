#!/usr/bin/env python3
"""children.py: a server's children through takeovers: what was told of them is not told again,
and what their parent did to them, in whichever version, holds for them."""
import os
import signal
import subprocess
import time

from load import Wrong
from session import ROOT, Session, free_port
from ways import ask


def do(session, *words):
    for word in words:
        said = ask(session.port, word.encode() + b"\n")
        if said != b"ok\n":
            raise Wrong(f"{word}: {said.decode()}")


def promote(session, name, keep, tries=50):
    """Children's ends are seen four times a second: until then it may be refused."""
    try:
        session.promote(name, keep)
    except Wrong as e:
        if not tries or "still reads what it told" not in str(e):
            raise
        time.sleep(0.1)
        promote(session, name, keep, tries - 1)


def takes(session, how, name):
    session.wait_for(lambda: not any(v["lag_cells"] for v in session.versions()), "all is read")
    if how == "crash":
        os.kill(session.leader()["pid"], signal.SIGSEGV)
    else:
        promote(session, name, how == "keep")
    session.wait_for(lambda: session.leader()["name"] == name, f"{name} leads")


def main():
    out, port, how, name = f"{os.getcwd()}/children", free_port(), "", "v0"
    subprocess.run(["gcc", "-O1", "-g", "-D_GNU_SOURCE", "-o", out,
                    ROOT + "/tests/takeover/children.c"], check=True)
    session = Session("children", 2, (), [out, str(port)], None, port)
    try:
        do(session, "killed", "ended", "aborted", "killed", "none", "make", "look")
        for how, name in (("keep", "f1"), ("keep", "v0"), ("keep", "f1"), ("end", "f2"),
                          ("crash", "v0")):
            if how == "crash":
                do(session, "look", "end", "none")
                break
            takes(session, how, name)
            do(session, "look", "killed", "ended", "look", "end", "none", "aborted", "killed",
               "make", "look")
        session.stop()
        if "dropped" in session.log():
            raise Wrong("a follower was dropped")
    except (Wrong, OSError) as e:
        raise SystemExit(f"{e} after {how} {name}\n{session.log()}\n{session.status_text()[:900]}")
    finally:
        session.clean()
    print(session.log() if os.environ.get("SHOW_LOG") else "children: ok")


if __name__ == "__main__":
    main()
