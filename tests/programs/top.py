"""mve top: on a terminal that this program plays, and as text.

A session with two followers runs beside it.  The terminal is a pty with a small
vt100 behind it; what the screen then shows is checked, not the bytes.
"""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

MVE = os.environ["MVE"]
NAME = os.environ["MVE_SESSION"]
TICKS = os.path.join(os.environ["TESTS"], "ticks")
PIECE = re.compile(rb"\x1b\[([?\d;]*)([A-Za-z])|\x1b[()][A-Z0-9]|\x1b.|[\x00-\x1f\x0f]"
                   rb"|[^\x00-\x1f\x1b]+")


class Screen:
    """mve top on a terminal of its own."""

    def __init__(self, rows, columns, *words):
        self.pid, self.fd = pty.fork()
        if not self.pid:
            os.environ["TERM"] = "vt100"
            time.sleep(0.1)  # until the size is set
            os.execv(MVE, [MVE, "top", NAME, *words])
        self.resize(rows, columns)

    def resize(self, rows, columns):
        self.cells = [[" "] * columns for _ in range(rows)]
        self.row = self.column = 0
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ,
                    struct.pack("HHHH", rows, columns, 0, 0))

    def _move(self, final, numbers):
        n = numbers[0] or 1
        row, column = {
            "H": (n - 1, (numbers[1:] or [1])[0] - 1), "A": (self.row - n, self.column),
            "B": (self.row + n, self.column), "C": (self.row, self.column + n),
            "D": (self.row, self.column - n)}.get(final, (self.row, self.column))
        self.row = max(0, min(row, len(self.cells) - 1))
        self.column = max(0, min(column, len(self.cells[0]) - 1))

    def _erase(self, final, mode):
        line = self.cells[self.row]
        for x in range(0 if mode else self.column, self.column + 1 if mode == 1 else len(line)):
            line[x] = " "
        for rest in self.cells[self.row + 1:] if final == "J" else []:
            rest[:] = " " * len(rest)

    def _print(self, text):
        for c in text.decode("ascii", "replace"):
            self.cells[self.row][min(self.column, len(self.cells[0]) - 1)] = c
            self.column += 1

    def _take(self, data):
        for piece in PIECE.finditer(data):
            text, final = piece.group(0), (piece.group(2) or b"").decode()
            numbers = [int(n or 0) for n in (piece.group(1) or b"").strip(b"?").split(b";")] \
                if final else []
            if final in ("J", "K"):
                self._erase(final, numbers[0])
            elif final:
                self._move(final, numbers)
            elif text == b"\r":
                self.column = 0
            elif text == b"\n":
                self.row = min(self.row + 1, len(self.cells) - 1)
            elif text == b"\b":
                self.column = max(0, self.column - 1)
            elif text[0] >= 32:
                self._print(text)

    def text(self):
        return "\n".join("".join(line).rstrip() for line in self.cells)

    def shows(self, pattern, seconds=10):
        """Waits until the screen shows it."""
        end = time.monotonic() + seconds
        while not re.search(pattern, self.text(), re.M):
            if time.monotonic() > end:
                sys.exit(f"not shown: {pattern}\n{self.text()}")
            if select.select([self.fd], [], [], 0.1)[0]:
                try:
                    self._take(os.read(self.fd, 65536))
                except OSError:
                    sys.exit(f"ended before it showed {pattern}\n{self.text()}")

    def press(self, keys):
        os.write(self.fd, keys.encode())

    def ends(self, seconds=10):
        """How it ended, as subprocess would say; the terminal is back to normal."""
        end = time.monotonic() + seconds
        left = b""
        while time.monotonic() < end:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if select.select([self.fd], [], [], 0.02)[0]:
                try:
                    left += os.read(self.fd, 65536)
                except OSError:
                    pass
            if pid:
                mode = termios.tcgetattr(self.fd)[3]
                if not (mode & termios.ECHO and mode & termios.ICANON):
                    sys.exit("the terminal is not as it was")
                os.close(self.fd)
                return os.waitstatus_to_exitcode(status)
        os.kill(self.pid, signal.SIGKILL)
        sys.exit("mve top does not end")


def check(what, condition):
    if not condition:
        sys.exit(f"does not hold: {what}")


def once(*words):
    return subprocess.run([MVE, "top", NAME, "--once", "--interval", "0.3", *words],
                          capture_output=True, text=True, timeout=20, check=False)


def as_text():
    out = once()
    check("--once: status 0", out.returncode == 0)
    for pattern in (rf"^mve top: {NAME} ", r"^ring \d+ MiB", r"^. v0 +leader +\d+ +\d+ ",
                    r"^. f1 +follower +\d+ +\d+ +\d+ ", r"^. f2 +follower",
                    r"^  write +effect +\d+"):
        if not re.search(pattern, out.stdout, re.M):
            sys.exit(f"--once: no {pattern} in:\n{out.stdout}")
    check("--once: 80 columns", max(map(len, out.stdout.splitlines())) <= 80)


def refused():
    for words in (("--interval", "0"), ("--interval", "x"), ("--interval",), ("--seconds", "1")):
        check(words, once(*words).returncode == 2)
    out = subprocess.run([MVE, "top", NAME], stdin=subprocess.DEVNULL, text=True,
                         capture_output=True, timeout=20, check=False)
    check("no terminal: status 2 and a hint", out.returncode == 2 and "--once" in out.stderr)


def on_screen():
    s = Screen(24, 80, "--interval", "0.3")
    s.shows(rf"^mve top: {NAME} ")
    s.shows(r"^> f1 +follower +\d+ +\d+ ")
    s.shows(r"^  write +effect +\d")
    s.press("p")
    s.shows("^paused")
    s.press("p")
    s.shows("^q quit")
    s.press("j")
    s.shows("^> f2 ")
    s.press("\x1bOA")  # the up arrow
    s.shows("^> f1 ")
    s.press("k")  # before the first is the last
    s.shows("^> f2 ")
    s.resize(10, 40)
    s.shows(r"\A(.*\n){9}q quit")
    s.resize(2, 7)
    time.sleep(0.5)
    s.resize(30, 100)
    s.shows(r"\A(.*\n){29}q quit")
    s.press("d")
    s.shows(r"^drop f2\? \(y/n\)")
    s.press("n")
    s.shows("^> f2 +follower")
    s.press("d")
    s.shows(r"^drop f2\?")
    s.press("y")
    s.shows("^. f2 +ended .*by mve drop")
    s.shows("^> f1 ")
    s.press("q")
    check("q: status 0", s.ends() == 0)


def signals():
    for sig in (signal.SIGTERM, signal.SIGINT):
        s = Screen(10, 40)
        s.shows("^mve top")
        os.kill(s.pid, sig)
        check(f"ends by {sig}", s.ends() == -sig)
    s = Screen(10, 40)
    s.shows("^mve top")
    s.press("\x03")  # as a terminal does it
    check("ends by ^C", s.ends() == -signal.SIGINT)


def promoted(s):
    s.press("P")
    s.shows(r"^promote f1\? \(y/n\)")
    s.press("y")
    s.shows("^. f1 +leader")
    s.shows("of f1$")


def main():
    session = subprocess.Popen([MVE, "run", "-n", NAME, "-f", "same", "-f", "same", "--", TICKS],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 10
        while once().stdout.count(" follower ") != 2 and time.monotonic() < end:
            time.sleep(0.05)
        as_text()
        refused()
        on_screen()
        signals()
        s = Screen(24, 80, "--interval", "0.3")
        s.shows("^> f1 ")
        promoted(s)
        subprocess.run([MVE, "stop", NAME], capture_output=True, timeout=20, check=False)
        s.shows("^the session has ended")
        time.sleep(0.7)
        s.press("q")
        check("q after the end: status 0", s.ends() == 0)
        check("--once after the end: status 1", once().returncode == 1)
    finally:
        session.terminate()
        session.wait(20)
    print("top: ok")


main()
