"""info_load.py PORT SECONDS: values of all sizes, and INFO in between."""
import random
import sys
import time

from load import Load, connect, must

PORT = int(sys.argv[1])
PIPED = 20


def values(_, number):
    s, r = connect(PORT), random.Random(number)
    f = s.makefile("rb")

    def step():
        s.sendall(b"".join(b"SET k%d %s\r\n" % (r.randrange(3000), b"x" * r.randrange(1, 3000))
                           for _ in range(PIPED)) + b"DEL k%d\r\n" % r.randrange(3000))
        for _ in range(PIPED):
            must(f.readline(), b"+OK\r\n")
        return must(f.readline()[:1], b":") + PIPED
    return step


def info(_, number):
    s = connect(PORT)
    f = s.makefile("rb")

    def step():
        s.sendall((b"INFO\r\n", b"INFO memory\r\n")[number])
        text = f.read(int(f.readline()[1:]) + 2)
        time.sleep(0.05)
        return must(b"\r\nused_memory:" in text, True)
    return step


load = Load(float(sys.argv[2]))
load.add(values, 4)
load.add(info, 2)
load.run()
