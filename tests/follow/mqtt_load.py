"""mqtt_load.py PORT SECONDS: rooms of one speaker and one listener each; every
message must come, once, in order."""
import struct
import sys

from load import Load, Wrong, connect, must

PORT = int(sys.argv[1])
CONNECT, CONNACK, PUBACK, PUBREC, PUBREL, PUBCOMP = 0x10, 0x20, 0x40, 0x50, 0x62, 0x70
PUBLISH, SUBSCRIBE, SUBACK, PING, PONG = 0x30, 0x82, 0x90, 0xC0, 0xD0


def text(s):
    return struct.pack(">H", len(s)) + s


class Client:
    def __init__(self, name, will=None):
        self.socket = connect(PORT)
        self.file = self.socket.makefile("rb")
        self.number = 0
        body = text(b"MQTT") + bytes([4, 2 | (4 if will else 0)]) + struct.pack(">H", 600)
        self.send(CONNECT, body + text(name) + (text(will[0]) + text(will[1]) if will else b""))
        self.expect(CONNACK, b"\0\0")

    def send(self, kind, body):
        size, head = len(body), b""
        while True:
            size, low = size >> 7, size & 127
            head += bytes([low | (128 if size else 0)])
            if not size:
                break
        self.socket.sendall(bytes([kind]) + head + body)

    def byte(self):
        got = self.file.read(1)
        if not got:
            raise Wrong("the connection ended")
        return got[0]

    def receive(self):
        kind, size, shift = self.byte(), 0, 0
        while True:
            byte = self.byte()
            size |= (byte & 127) << shift
            shift += 7
            if not byte & 128:
                return kind, self.file.read(size)

    def expect(self, kind, body):
        must(self.receive(), (kind, body), "an answer")

    def next_number(self):
        self.number = self.number % 60000 + 1
        return struct.pack(">H", self.number)

    def subscribe(self, topic):
        number = self.next_number()
        self.send(SUBSCRIBE, number + text(topic) + b"\2")
        self.expect(SUBACK, number + b"\2")

    def publish(self, topic, data, qos=0, retain=0):
        number = self.next_number()
        self.send(PUBLISH | qos << 1 | retain, text(topic) + (number if qos else b"") + data)
        if qos == 1:
            self.expect(PUBACK, number)
        elif qos == 2:
            self.expect(PUBREC, number)
            self.send(PUBREL, number)
            self.expect(PUBCOMP, number)

    def message(self):
        kind, body = self.receive()
        size = struct.unpack(">H", body[:2])[0]
        topic, rest, qos = body[2:2 + size], body[2 + size:], kind >> 1 & 3
        if qos == 1:
            self.send(PUBACK, rest[:2])
        elif qos == 2:
            self.send(PUBREC, rest[:2])
            self.expect(PUBREL, rest[:2])
            self.send(PUBCOMP, rest[:2])
        return topic, rest[2:] if qos else rest


def room(_, number):
    name, turn = b"room-%d" % number, [0]
    listener, speaker = Client(b"listener-" + name), Client(b"speaker-" + name)
    listener.subscribe(name + b"/#")

    def step():
        turn[0] += 1
        topic, data = name + b"/%d" % (turn[0] % 7), b"message %d" % turn[0] * (1 + turn[0] % 300)
        speaker.publish(topic, data, turn[0] % 3)
        must(listener.message(), (topic, data), "a message")
        return 1
    return step


def kept(_, number):
    """Retained messages and last wills, by clients who come and go."""
    topic, turn = b"kept-%d" % number, [0]
    watcher = Client(b"watcher-%d" % number)
    watcher.subscribe(b"will-%d" % number)

    def step():
        turn[0] += 1
        data = b"%d" % turn[0]
        one = Client(b"one-%d" % number, (b"will-%d" % number, data))
        one.publish(topic, data, 1, 1)
        other = Client(b"other-%d" % number)
        other.subscribe(topic)
        must(other.message(), (topic, data), "retained")
        other.send(PING, b"")
        other.expect(PONG, b"")
        other.send(0xE0, b"")
        for c in (one, other):
            c.file.close()
            c.socket.close()
        must(watcher.message(), (b"will-%d" % number, data), "a will")
        return 5
    return step


def main():
    load = Load(float(sys.argv[2]))
    load.add(room, 12)
    load.add(kept, 3)
    load.run()


main()
