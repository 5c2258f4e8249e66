"""Work for a Python interpreter: threads, processes, signals, an event loop,
foreign functions made at run time (libffi's closures), sockets.  With an argument: without
what several processes lock."""
import asyncio
import ctypes
import multiprocessing
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading


def threads():
    total, lock = [0], threading.Lock()

    def work():
        for _ in range(1000):
            with lock:
                total[0] += 1

    workers = [threading.Thread(target=work) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return total[0] == 8000


def square(n):
    return n * n


def processes():
    with multiprocessing.Pool(3) as pool:
        return pool.map(square, range(50)) == [n * n for n in range(50)]


def children():
    out = subprocess.run(["sort", "-r"], input="a\nc\nb\n", text=True,
                         capture_output=True, check=True).stdout
    missing = None
    try:
        subprocess.run(["no-such-program"], check=False)
    except FileNotFoundError as e:
        missing = e.errno
    killed = subprocess.Popen(["sleep", "100"])
    killed.terminate()
    return out == "c\nb\na\n" and missing == 2 and killed.wait() == -signal.SIGTERM


def signals():
    seen = []
    signal.signal(signal.SIGALRM, lambda sig, frame: seen.append(sig))
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    while len(seen) <= 20:   # on a busy machine that takes long; without any, the row's time
        select.select([], [], [], 0.01)
        os.getppid()
    signal.setitimer(signal.ITIMER_REAL, 0)
    return True


async def echo(reader, writer):
    writer.write(await reader.readline())
    await writer.drain()
    writer.close()


async def ask(port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"hello\n")
    line = await reader.readline()
    writer.close()
    return line


async def event_loop():
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    lines = await asyncio.gather(*(ask(port) for _ in range(50)))
    process = await asyncio.create_subprocess_exec(
        "echo", "child", stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate()
    server.close()
    return set(lines) == {b"hello\n"} and out == b"child\n"


def foreign():
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int),
                            ctypes.POINTER(ctypes.c_int))
    array = (ctypes.c_int * 100)(*range(100))
    ctypes.CDLL(None).qsort(array, 100, 4, kind(lambda a, b: b[0] - a[0]))
    return list(array) == list(range(99, -1, -1))


def forks():
    for n in range(50):
        pid = os.fork()
        if not pid:
            os._exit(n)
        if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != n:
            return False
    return True


def files():
    with tempfile.TemporaryDirectory(dir=".") as folder:
        path = os.path.join(folder, "file")
        with open(path, "wb") as file:
            file.write(os.urandom(1 << 20))
        return os.stat(path).st_size == 1 << 20 and os.listdir(folder) == ["file"]


def passing():
    left, right = socket.socketpair()
    read_end, write_end = os.pipe()
    socket.send_fds(left, [b"x"], [write_end])
    _, fds, _, _ = socket.recv_fds(right, 10, 1)
    os.write(fds[0], b"through")
    return os.read(read_end, 100) == b"through"


def main():
    good = {
        "threads": threads(), "processes": len(sys.argv) > 1 or processes(),
        "children": children(),
        "signals": signals(), "event loop": asyncio.run(event_loop()),
        "foreign": foreign(), "forks": forks(), "files": files(),
        "passing": passing(),
    }
    bad = [name for name, passed in good.items() if not passed]
    if bad:
        sys.exit("wrong: " + ", ".join(bad))
    print("python: ok")


if __name__ == "__main__":
    main()
