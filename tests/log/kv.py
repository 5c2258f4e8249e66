"""kv.py: what tests of recordings share: servers/kv, recorded with some requests."""
import os
import shutil
import socket
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.append(ROOT + "/tests/servers")
from free_port import free_port     # noqa: E402

MVE = os.environ.get("MVE", f"{ROOT}/build/mve")


def fail(why):
    print(f"FAILED: {why}")
    sys.exit(1)


def mve(*words, status=0, **more):
    p = subprocess.run([MVE, *words], capture_output=True, text=True, timeout=200, **more)
    if p.returncode != status:
        fail(f"{words}: {p.returncode}\n{p.stdout}\n{p.stderr}")
    return p


def connect(port):
    for _ in range(600):
        try:
            return socket.create_connection(("127.0.0.1", port))
        except OSError:
            time.sleep(0.1)
    fail("the server does not come")


def build(name, change=lambda text: text):
    """The server, with its text changed, as ./NAME."""
    with open(f"{ROOT}/servers/kv/v1.c") as f:
        text = change(f.read())
    with open(f"{name}.c", "w") as f:
        f.write(text)
    subprocess.run(["gcc", "-D_GNU_SOURCE", "-g", "-O0", f"{name}.c", "-o", name], check=True)


def record(log, program, talk, follower=None):
    """Of the server ./PROGRAM with these (request, answer) on a connection; its port."""
    shutil.rmtree(log, ignore_errors=True)
    port = free_port()
    more = ["-f", f"./{follower} {port}"] if follower else []
    session = subprocess.Popen([MVE, "run", "--record", log, *more, "--", f"./{program}", str(port)],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    s = connect(port)
    f = s.makefile("rw")
    for line, answer in talk:
        f.write(line + "\n")
        f.flush()
        if answer is None:      # the server dies of it
            break
        if f.readline() != answer + "\n":
            fail(f"{line} is not answered with {answer}")
    if answer is None:
        f.read()
    s.close()
    session.terminate()
    session.wait(60)
    return port
