"""Prints a TCP port of 127.0.0.1 that is free now, outside the range that the
kernel gives to clients: nobody takes it by chance before the server does."""
import random
import socket

while True:
    with socket.socket() as s:
        try:
            s.bind(("127.0.0.1", random.randrange(10000, 32000)))
        except OSError:
            continue
        print(s.getsockname()[1])
        break
