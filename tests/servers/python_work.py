"""What Python's own machinery for several tasks does; prints what came out."""
import asyncio
import concurrent.futures
import multiprocessing as mp
import os
import signal
import subprocess
import sys
import tempfile
import threading


def square(n):
    return n * n


def worker(todo, done):
    for n in iter(todo.get, None):
        done.put(n + 1)


def pools():
    for method in ("fork", "spawn", "forkserver"):
        with mp.get_context(method).Pool(2) as pool:
            print(method, sum(pool.map(square, range(200))))
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        print("threads", sum(pool.map(square, range(500))))


def queues():
    todo, done = mp.Queue(), mp.Queue()
    workers = [mp.Process(target=worker, args=(todo, done)) for _ in range(3)]
    for w in workers:
        w.start()
    for n in range(100):
        todo.put(n)
    for _ in workers:
        todo.put(None)
    print("queue", sum(done.get() for _ in range(100)))
    for w in workers:
        w.join()
    print("exit codes", [w.exitcode for w in workers])


async def echo(reader, writer):
    while line := await reader.readline():
        writer.write(line.upper())
    writer.close()


async def speak(port, n):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    got = b""
    for i in range(20):
        writer.write(b"line %d of %d\n" % (i, n))
        got += await reader.readline()
    writer.close()
    return len(got)


async def echoes():
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    print("asyncio", sum(await asyncio.gather(*(speak(port, n) for n in range(20)))))
    child = await asyncio.create_subprocess_exec("cat", stdin=-1, stdout=-1)
    print("child", (await child.communicate(b"x" * 100000))[0].count(b"x"), child.returncode)
    try:
        await asyncio.wait_for(asyncio.sleep(5), 0.05)
    except asyncio.TimeoutError:
        print("timeout in time")
    server.close()


def children():
    print(subprocess.run(["sh", "-c", "exit 9"]).returncode)
    print(subprocess.run(["sh", "-c", "kill -9 $$"]).returncode)
    print(subprocess.run("echo one | tr a-z A-Z", shell=True, capture_output=True,
                         text=True, cwd="/").stdout.strip())
    with tempfile.TemporaryFile() as file:
        subprocess.run(["seq", "1000"], stdout=file, preexec_fn=os.setsid)
        print("wrote", file.seek(0, 2))
    try:
        subprocess.run(["sleep", "5"], timeout=0.1)
    except subprocess.TimeoutExpired:
        print("killed in time")
    try:
        subprocess.run(["/no/such/program"])
    except FileNotFoundError as e:
        print(e.strerror)


def alarms():
    came = []
    signal.signal(signal.SIGALRM, lambda *_: came.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
    while len(came) < 10:
        signal.pause()
    signal.setitimer(signal.ITIMER_REAL, 0)
    print("alarms came; threads", threading.active_count())


if __name__ == "__main__":
    pools()
    queues()
    asyncio.run(echoes())
    children()
    alarms()
    sys.stdout.flush()
