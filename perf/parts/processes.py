"""Processes that the bench starts: find them, count their CPU, end them.

Whatever is started here is ended here, by pid: on success, on a failure, on
^C.  This process is a subreaper, so that a monitor or a server which detaches
from its parent stays in reach.  Nothing else on the machine is touched.
"""

import ctypes
import os
import shutil
import signal
import socket
import subprocess
import time

PR_SET_CHILD_SUBREAPER = 36
CPUCLOCK_SCHED = 2
TAG = "MVE_BENCH_RUN"
PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin:/usr/bin:/bin"

_alive = []
_serial = 0


class Failed(Exception):
    """A thing that was to be measured could not be."""


def _interrupt(*_):
    raise KeyboardInterrupt


def prepare():
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for sig in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(sig, _interrupt)


def which(name):
    return shutil.which(name, path=PATH)


def cpus():
    """The CPU for what is measured, and the one for what drives it."""
    have = sorted(os.sched_getaffinity(0))
    return have[-1], have[0]


def pinned(cpu, argv):
    return ["taskset", "-c", str(cpu), *argv]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def _stat(pid):
    with open(f"/proc/{pid}/stat", "rb") as f:
        return f.read().rpartition(b")")[2].split()


def _parents():
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                parents[int(entry)] = int(_stat(entry)[1])
            except (OSError, IndexError):
                pass
    return parents


def descendants(root, parents=None):
    parents = parents or _parents()
    found, todo = [], [root]
    while todo:
        at = todo.pop()
        for pid, parent in parents.items():
            if parent == at:
                found.append(pid)
                todo.append(pid)
    return found


def cpu_ns(pid):
    """User and system time of all the process' threads, ended ones too.

    The same figure as utime + stime in /proc/PID/stat, in ns and not in 10 ms.
    """
    try:
        return time.clock_gettime_ns((~pid << 3) | CPUCLOCK_SCHED)
    except OSError:
        return 0


def user_system_ticks(pid):
    try:
        fields = _stat(pid)
        return int(fields[11]), int(fields[12])
    except (OSError, IndexError):
        return 0, 0


def executable(pid):
    try:
        return os.readlink(f"/proc/{pid}/exe").removesuffix(" (deleted)")
    except OSError:
        return ""


def name_of(pid):
    """As the kernel has it."""
    try:
        with open(f"/proc/{pid}/comm") as f:
            return f.read().strip()
    except OSError:
        return ""


class Running:
    """A command, and every process that comes of it."""

    def __init__(self, argv, folder, holders=(), talk=False):
        global _serial
        _serial += 1
        self.tag = f"{TAG}={os.getpid()}.{_serial}"
        self.holders = {os.path.realpath(h) for h in holders if h}
        self.log = os.path.join(folder, f"log.{_serial}")
        env = dict(os.environ, PATH=PATH)
        env[TAG] = self.tag.partition("=")[2]
        with open(self.log, "wb") as log:
            self.popen = subprocess.Popen(
                argv, cwd=folder, env=env, text=True,
                stdin=subprocess.PIPE if talk else subprocess.DEVNULL,
                stdout=subprocess.PIPE if talk else log, stderr=log,
                start_new_session=True)
        _alive.append(self)

    def ask(self, line):
        """A line to a program that talks, and its answer."""
        try:
            self.popen.stdin.write(line + "\n")
            self.popen.stdin.flush()
            answer = self.popen.stdout.readline()
        except OSError:
            answer = ""
        if not answer:
            raise Failed(f"{self.said()} (no answer to {line!r})")
        return answer

    def hush(self):
        """Ends the talk: what reads its input until the end, ends."""
        for pipe in (self.popen.stdin, self.popen.stdout):
            try:
                if pipe:
                    pipe.close()
            except OSError:
                pass

    def said(self):
        """The first line of what it printed: the reason of a failure."""
        with open(self.log, errors="replace") as log:
            lines = [line.strip() for line in log if line.strip()]
        return " ".join(lines[0].split()) if lines else "no message"

    def _is_ours(self, pid):
        try:
            if int(_stat(pid)[3]) == self.popen.pid:
                return True
            with open(f"/proc/{pid}/environ", "rb") as f:
                return self.tag.encode() in f.read().split(b"\0")
        except (OSError, IndexError):
            return False

    def members(self):
        """Processes of this command, those that left its tree included."""
        parents = _parents()
        roots = {r.popen.pid for r in _alive}
        found = [self.popen.pid] + descendants(self.popen.pid, parents)
        for pid, parent in parents.items():
            if parent == os.getpid() and pid not in roots and \
                    self._is_ours(pid):
                found += [pid] + descendants(pid, parents)
        return found

    def split(self):
        """(the server's pids, those of the tracer or monitor that holds it)"""
        servers, holders = [], []
        for pid in self.members():
            exe = executable(pid)
            if exe in self.holders:
                holders.append(pid)
            elif exe:
                servers.append(pid)
        return servers, holders

    def _wait_gone(self, pids, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.popen.poll()
            for pid in pids:
                if pid != self.popen.pid:
                    try:
                        os.waitpid(pid, os.WNOHANG)
                    except OSError:
                        pass
            if not any(_running(pid) for pid in pids):
                return True
            time.sleep(0.005)
        return False

    def stop(self):
        """The server is asked first; its holder then ends by itself."""
        servers, _ = self.split()
        everyone = self.members()
        signal_all(servers, signal.SIGTERM)
        if not self._wait_gone(everyone, 5):
            everyone = sorted(set(everyone + self.members()))
            signal_all([p for p in everyone if _running(p)], signal.SIGKILL)
            self._wait_gone(everyone, 5)
        self.popen.wait(5)
        self.hush()
        if self in _alive:
            _alive.remove(self)


def _running(pid):
    try:
        return _stat(pid)[0] not in (b"Z", b"X")
    except (OSError, IndexError):
        return False


def signal_all(pids, sig):
    for pid in pids:
        try:
            os.kill(pid, sig)
        except OSError:
            pass


def stop_all():
    """Ends everything; a second ^C does not keep it from that."""
    old = signal.pthread_sigmask(signal.SIG_BLOCK,
                                 (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
    try:
        _stop_all()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old)


def _stop_all():
    for running in list(_alive):
        running.stop()
    rest = descendants(os.getpid())
    signal_all(rest, signal.SIGKILL)
    for pid in rest:
        try:
            os.waitpid(pid, 0)
        except OSError:
            pass


def output(argv, folder, seconds=60):
    """What a command prints; Failed with its own words when it fails."""
    running = Running(argv, folder)
    try:
        status = running.popen.wait(seconds)
    except subprocess.TimeoutExpired:
        raise Failed(f"no end after {seconds} s: {' '.join(argv[-3:])}")
    finally:
        running.stop()
    if status:
        raise Failed(f"{running.said()} (status {status})")
    with open(running.log, errors="replace") as log:
        return log.read()


def wait_for_port(running, port, seconds=20):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if running.popen.poll() is not None:
            raise Failed(f"ended at its start: {running.said()}")
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.01)
    raise Failed(f"does not listen after {seconds} s: {running.said()}")


def wait_for_word(running, word, seconds=20):
    """Until it has said so."""
    end = time.monotonic() + seconds
    while word not in running.said():
        if running.popen.poll() is not None or time.monotonic() > end:
            raise Failed(running.said())
        time.sleep(0.01)


class Foreign:
    """What else the machine did meanwhile: figures beside a busy machine lie.

    Busy ticks of all CPUs less those of our own processes, which must all have
    been ended and waited for when share() is called.
    """

    def __init__(self):
        self.start = self._read()

    @staticmethod
    def _read():
        with open("/proc/stat") as f:
            t = [int(x) for x in f.readline().split()[1:9]]
        own = os.times()
        tick = os.sysconf("SC_CLK_TCK")
        return {"busy": (t[0] + t[1] + t[2] + t[5] + t[6]) / tick,
                "steal": t[7] / tick, "all": sum(t) / tick,
                "own": own.user + own.system + own.children_user
                + own.children_system}

    def share(self):
        now = self._read()
        d = {k: now[k] - self.start[k] for k in now}
        total = d["all"] or 1
        return {"others": max(0.0, d["busy"] - d["own"]) / total,
                "stolen": d["steal"] / total}
