"""memcached_load.py PORT N: eight clients, each N rounds of set, get, incr,
append, delete and a value that takes several reads; checks every answer."""
import socket
import sys
import threading


class Client:
    def __init__(self, port, number, rounds):
        self.socket = socket.create_connection(("127.0.0.1", port), 10)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")
        self.number, self.rounds, self.trouble = number, rounds, None

    def ask(self, text, *expected):
        self.socket.sendall(text)
        for line in expected:
            got = self.file.readline()
            if got != line + b"\r\n":
                raise ValueError(f"{text[:40]!r}: {got[:80]!r}, not {line[:80]!r}")

    def round(self, i):
        key = b"key-%d-%d" % (self.number, i % 50)
        value = b"value %d" % i
        self.ask(b"set %s 7 0 %d\r\n%s\r\n" % (key, len(value), value), b"STORED")
        self.ask(b"get %s\r\n" % key, b"VALUE %s 7 %d" % (key, len(value)), value, b"END")
        self.ask(b"incr count-%d 1\r\n" % self.number, b"%d" % (i + 1))
        if i % 50 == 0:
            big = b"x" * 200000
            self.ask(b"set big-%d 0 0 200000\r\n%s\r\n" % (self.number, big), b"STORED")
            self.ask(b"get big-%d\r\n" % self.number,
                     b"VALUE big-%d 0 200000" % self.number, big, b"END")
            self.ask(b"delete big-%d\r\n" % self.number, b"DELETED")

    def run(self):
        try:
            self.ask(b"set count-%d 0 0 1\r\n0\r\n" % self.number, b"STORED")
            for i in range(self.rounds):
                self.round(i)
            self.ask(b"quit\r\n")
        except (OSError, ValueError) as e:
            self.trouble = e
        self.socket.close()


def main():
    clients = [Client(int(sys.argv[1]), n, int(sys.argv[2])) for n in range(8)]
    threads = [threading.Thread(target=c.run) for c in clients]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for c in clients:
        if c.trouble:
            sys.exit(f"client {c.number}: {c.trouble}")
    print("8 clients served")


main()
