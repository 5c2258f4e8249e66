"""mosquitto_client.py PORT N: a small MQTT 3.1.1 subscriber and publisher."""
import socket
import struct
import sys


def text(s):
    return struct.pack(">H", len(s)) + s


class Client:
    def __init__(self, port, name, will=None):
        self.socket = socket.create_connection(("127.0.0.1", port), 10)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")
        self.number = 0
        body = text(b"MQTT") + bytes([4, 2 | (4 if will else 0)]) + struct.pack(">H", 60)
        body += text(name)
        if will:
            body += text(will[0]) + text(will[1])
        self.send(0x10, body)
        self.expect(0x20, b"\0\0")

    def send(self, kind, body):
        size, head = len(body), b""
        while True:
            size, low = size >> 7, size & 127
            head += bytes([low | (128 if size else 0)])
            if not size:
                break
        self.socket.sendall(bytes([kind]) + head + body)

    def receive(self):
        kind, size, shift = self.file.read(1)[0], 0, 0
        while True:
            byte = self.file.read(1)[0]
            size |= (byte & 127) << shift
            shift += 7
            if not byte & 128:
                return kind, self.file.read(size)

    def expect(self, kind, body):
        got = self.receive()
        if got != (kind, body):
            sys.exit(f"got {got}, expected {(kind, body)}")

    def subscribe(self, topic):
        self.number += 1
        self.send(0x82, struct.pack(">H", self.number) + text(topic) + b"\2")
        self.expect(0x90, struct.pack(">H", self.number) + b"\2")

    def publish(self, topic, data, qos=0, retain=0):
        self.number += 1
        number = struct.pack(">H", self.number)
        self.send(0x30 | qos << 1 | retain, text(topic) + (number if qos else b"") + data)
        if qos == 1:
            self.expect(0x40, number)
        elif qos == 2:
            self.expect(0x50, number)
            self.send(0x62, number)
            self.expect(0x70, number)

    def message(self):
        kind, body = self.receive()
        size = struct.unpack(">H", body[:2])[0]
        topic, rest = body[2:2 + size], body[2 + size:]
        qos = kind >> 1 & 3
        if qos == 1:
            self.send(0x40, rest[:2])
        elif qos == 2:
            self.send(0x50, rest[:2])
            self.expect(0x62, rest[:2])
            self.send(0x70, rest[:2])
        return topic, rest[2:] if qos else rest


def main():
    port, rounds = int(sys.argv[1]), int(sys.argv[2])
    listener, speaker = Client(port, b"listener"), Client(port, b"speaker")
    listener.subscribe(b"room/#")
    for i in range(rounds):
        data = b"message %d" % i * (1 + i % 200)
        speaker.publish(b"room/%d" % i, data, i % 3)
        if listener.message() != (b"room/%d" % i, data):
            sys.exit(f"message {i} is another")
    doomed = Client(port, b"doomed", (b"room/will", b"farewell"))
    doomed.socket.shutdown(socket.SHUT_RDWR)
    print(listener.message())
    speaker.publish(b"kept", b"for later", 1, 1)
    late = Client(port, b"late")
    late.subscribe(b"kept")
    print(late.message())
    print("messages passed:", rounds)


main()
