"""What of mve is left in a process that it has left: nothing."""
import os

from server import Wrong

SIGNALS = ("SigBlk", "SigIgn", "SigCgt")
ALL = "fffffffffffbfeff"    # but SIGKILL and SIGSTOP: a thread that begins, ends or makes another
PROT_EXEC = "x"


def maps(pid):
    with open(f"/proc/{pid}/maps") as f:
        return [line.split(None, 5) for line in f]


def code_equal(pid):
    """Executable mappings of files are as the files have them; the vDSO is as ours."""
    with open(f"/proc/{pid}/mem", "rb") as memory:
        for row in maps(pid):
            path = row[5].strip() if len(row) > 5 else ""
            if PROT_EXEC not in row[1] or not path.startswith(("/", "[vdso]")):
                continue
            start, end = (int(n, 16) for n in row[0].split("-"))
            memory.seek(start)
            have = memory.read(end - start)
            want = own_vdso() if path == "[vdso]" else file_at(path, int(row[2], 16), end - start)
            if len(have) < end - start:
                raise OSError("it has another memory by now")
            if have != want:
                at = next(i for i in range(len(have)) if have[i] != want[i])
                raise Wrong(f"{path}: differs at {at:#x}: {have[at:at + 8].hex()}, "
                            f"{want[at:at + 8].hex()} in the file")


def file_at(path, offset, length):
    with open(path, "rb") as f:
        f.seek(offset)
        return f.read(length).ljust(length, b"\0")


def own_vdso():
    with open("/proc/self/mem", "rb") as memory:
        for row in maps("self"):
            if len(row) > 5 and row[5].strip() == "[vdso]":
                start, end = (int(n, 16) for n in row[0].split("-"))
                memory.seek(start)
                return memory.read(end - start)


def suspended(pid, tid):
    """In rt_sigsuspend, which has a mask of its own for as long as it lasts."""
    with open(f"/proc/{pid}/task/{tid}/syscall") as f:
        return f.read().split()[0] == "130"


def signals(pid):
    """Of each thread what it blocks, ignores and handles."""
    found = {}
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/status") as f:
            found[tid] = [line for line in f if line.startswith(SIGNALS)]
        if suspended(pid, tid) or found[tid][0].split()[1] == ALL:
            found[tid][0] = "suspended"
    return found


def same_signals(a, b):
    return a[1:] == b[1:] and (a[0] == b[0] or "suspended" in (a[0], b[0]))


def ours(pid):
    """Mappings that a server has not got by itself."""
    return [row for row in maps(pid) if "memfd:mve" in row[-1] or
            ("x" in row[1] and len(row) < 6)]


def is_left(pid, before):
    if ours(pid):
        raise Wrong(f"{pid}: still mapped: {ours(pid)}")
    code_equal(pid)
    now = signals(pid)
    for tid in set(before) & set(now):
        if not same_signals(before[tid], now[tid]):
            raise Wrong(f"{pid}: thread {tid}: {before[tid]} were, {now[tid]} are")
