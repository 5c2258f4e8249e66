"""A server that mve-driver runs, built from sources here, for the tests of updates.

Everything is in a folder of its own; what was started is gone when the `with` ends.
"""
import os
import socket
import subprocess
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.path.join(ROOT, "build")
FLAGS = ["-D_GNU_SOURCE", "-std=gnu17", "-O2", "-g", "-fPIC", f"-I{ROOT}", "-pthread"]
LINK = ["-shared", "-Wl,-Bsymbolic", "-Wl,-z,now", "-Wl,--build-id=sha1"]
HANGS_S = 60            # nothing here takes so long unless it hangs


def run(*words, ok=True):
    """Status and all output; with ok it must be 0."""
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=HANGS_S, cwd=ROOT)
    assert not ok or done.returncode == 0, f"{words}: {done.returncode}\n{done.stdout}"
    return done.returncode, done.stdout


def build(source, to, *defines):
    run("gcc", *FLAGS, *defines, source, *LINK, "-o", to)
    return to


def xform(old, new, to, says=None):
    """mve-xform's status and words."""
    return run(f"{BIN}/mve-xform", *(["-t", says] if says else []), "-o", to, old, new, ok=False)


class Client:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), HANGS_S)
        self.file = self.socket.makefile("r", newline="\n")

    def ask(self, request):
        self.socket.sendall(request.encode() + b"\n")
        reply = self.file.readline()
        assert reply, f"{request!r}: the connection was closed"
        return reply.rstrip("\n")

    def expect(self, request, reply):
        got = self.ask(request)
        assert got == reply, f"{request!r}: {got!r}, expected {reply!r}"


class Server:
    """A server at work; port is the one that its first line names."""

    def __init__(self, path, *before, control=None):
        self.folder = tempfile.mkdtemp(prefix="mve-update-")
        self.control = control or os.path.join(self.folder, "control")
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([*before, f"{BIN}/mve-driver", "-c", self.control, path,
                                         "0"], stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        line = self.process.stdout.readline()
        assert "ready on port" in line, line + self.process.stderr.read()
        self.port = int(line.split()[-1])

    def __enter__(self):
        return self

    def __exit__(self, *what):
        ended = self.process.poll()
        self.process.terminate()        # mve passes it on to the server that it runs
        try:
            self.process.wait(HANGS_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
        said = self.process.communicate()[1]
        if what[0]:
            print(f"the server: status {ended} {said}")
        for name in os.listdir(self.folder):
            os.unlink(os.path.join(self.folder, name))
        os.rmdir(self.folder)

    def order(self, what, new, xform, *ms, retry=()):
        return run(f"{BIN}/mve-driver", "-a", self.control, *retry, what, new, xform, *ms, ok=False)

    def client(self):
        return Client(self.port)
