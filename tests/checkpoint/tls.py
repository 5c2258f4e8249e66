#!/usr/bin/env python3
"""tls.py MVE MVE_CC ROOT: requests that come by OpenSSL are taken back.

tls_server.c, built by mve-cc, with Debian's library: under mve alone and with a follower, and by
itself.  A request that fails closes its own connection, with no plain bytes in it (--reply); the
others go on, and what it had changed is as before.  One that was answered is not taken back.
"""
import os
import signal
import ssl
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from rollback_session import Session, Wrong, build  # noqa: E402

MVE, CC, ROOT = sys.argv[1:4]
SERVER = ["./tls_server", "cert.pem", "key.pem"]
BAD = 20


class Secure(Session):
    def connect(self):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context.wrap_socket(super().connect())

    def bad(self, request, want=b"", cut=0):
        try:
            super().bad(request, want, cut)
        except ssl.SSLEOFError:		# closed without a farewell
            pass


class Native(Secure):
    """Without mve."""

    def __init__(self):
        Session.count += 1
        self.err = open("native.err", "w+")
        self.process = subprocess.Popen(SERVER, stdout=subprocess.PIPE, stderr=self.err, text=True,
                                        env={**os.environ, "MVE_CHECKPOINT_SEAM": "1"})
        self.port = int(self.process.stdout.readline())


def load(s):
    peers = [s.connect() for _ in range(3)]
    for n in range(BAD):
        s.ask(peers[n % 3], "add 1", str(n + 1))
        s.bad("bug 1000")
        s.ask(peers[(n + 1) % 3], "get", str(n + 1))
    return peers


def dies(s):
    """What was answered is not taken back."""
    s.ask(s.connect(), "add 13", str(BAD + 13))
    got = s.process.wait(60)
    if got != -signal.SIGSEGV or "not taken back: it had sent something" not in s.said():
        raise Wrong(f"ended with {got}, said {s.said()!r}")


def main():
    if not os.path.exists("/usr/include/openssl/ssl.h") or not os.access(CC, os.X_OK):
        print("mve-cc or OpenSSL's headers are missing")
        sys.exit(77)
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=t",
                    "-keyout", "key.pem", "-out", "cert.pem"], check=True, capture_output=True)
    build(CC, HERE + "/tls_server.c", "tls_server", "-lssl", "-lcrypto")
    with open("reply", "w") as f:
        f.write("SORRY\n")
    for options in (["--rollback"], ["--rollback", "--reply", "reply", "-f", "same"]):
        s = Secure(MVE, options, SERVER)
        load(s)
        s.counted(BAD)
        if "  bug 1000" not in s.report():
            raise Wrong(f"the request is not shown: {s.report()!r}")
        if "--reply" not in options:
            dies(s)
            continue
        s.follows()
        subprocess.run([MVE, "promote", s.name, "f1"], check=True, timeout=60)
        s.ask(s.connect(), "get", str(BAD))
        s.end()
    s = Native()
    load(s)
    dies(s)
    print("tls: ok")


try:
    main()
except Wrong as e:
    sys.exit(f"tls: {e}")
