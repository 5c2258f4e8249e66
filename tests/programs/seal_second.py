"""While one thread breaks the seal, another's new code waits: see seal_second.c."""
import os
import selectors
import subprocess
import tempfile

ROOT = os.environ.get("ROOT") or os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
MVE = os.environ.get("MVE", ROOT + "/build/mve")
SESSION = os.environ.get("MVE_SESSION", f"t-{os.getpid()}")
ABSENT_S = 0.5      # a slow machine may miss the fault, and makes none


def begin(*command):
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)


def line(process, seconds=30):
    with selectors.DefaultSelector() as s:
        s.register(process.stdout, selectors.EVENT_READ)
        return process.stdout.readline().decode().strip() if s.select(seconds) else None


def tell(process, text):
    process.stdin.write(text)


with tempfile.TemporaryDirectory() as folder:
    program = folder + "/seal_second"
    subprocess.run(["gcc", "-O1", "-pthread", "-o", program,
                    ROOT + "/tests/programs/seal_second.c"], check=True)
    server = begin(MVE, "run", "-n", SESSION, "--", program)
    first = line(server).split()[1]
    assert line(server).startswith("tid")
    tracer = begin(program, first)
    assert line(tracer) == "holds"
    tell(server, b"0")
    assert line(tracer) == "stopped", "the first thread does not arm itself"
    tell(server, b"1")
    early = line(server, ABSENT_S)
    assert early is None, f"not all threads are armed, and there is: {early}"
    tell(tracer, b"\n")
    assert {line(server), line(server)} == {"code 0", "code 1"}
    tracer.wait(30)
    server.stdin.close()
    assert server.wait(30) == 0
print("seal_second: ok")
