"""talker.py TCP SIX UDP UNIX FILE: a server that says what tests/log/said.py then looks for.

It echoes over TCP (in a process of its own for each connection, which has the socket under
another number), IPv6 (by a thread), UDP and a Unix socket; "FILE\n" is answered by sendfile, and
"END\n" ends it.  Ports are numbers, the last two are paths.
"""
import os
import socket
import sys
import threading

tcp_port, six_port, udp_port = map(int, sys.argv[1:4])
path, file = sys.argv[4:6]


def listening(family, address):
    s = socket.socket(family, socket.SOCK_STREAM)
    if family != socket.AF_UNIX:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(address)
    s.listen(8)
    return s


def echo(s):
    while True:
        got = s.recv(1 << 20)
        if not got:
            break
        if got == b"FILE\n":
            with open(file, "rb") as f:
                size = os.fstat(f.fileno()).st_size
                at = 0
                while at < size:
                    at += os.sendfile(s.fileno(), f.fileno(), at, size - at)
        else:
            s.sendall(got)
    s.close()


tcp = listening(socket.AF_INET, ("0.0.0.0", tcp_port))
six = listening(socket.AF_INET6, ("::1", six_port))
near = listening(socket.AF_UNIX, path)
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.bind(("127.0.0.1", udp_port))

for _ in range(2):
    c, _ = tcp.accept()
    pid = os.fork()
    if not pid:
        tcp.close()
        os.dup2(c.fileno(), 77)
        c.close()
        echo(socket.socket(fileno=77))
        os._exit(0)
    c.close()
    os.waitpid(pid, 0)
c, _ = six.accept()
t = threading.Thread(target=echo, args=(c,))
t.start()
t.join()
c, _ = near.accept()
echo(c)
while True:
    got, peer = udp.recvfrom(65536)
    udp.sendto(got, peer)
    if got == b"END\n":
        break
