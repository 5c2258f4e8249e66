#!/usr/bin/env python3
"""said.py: what went over sockets is in a recording, connection by connection.

talker.py is recorded, with clients that keep what they say and get; then the packets that
`mve log export` makes are read by a parser of our own, which looks at every checksum and sequence
number, and put together they must be the same.  Where tcpdump is installed it reads them, too.
"""
import json
import os
import random
import resource
import shutil
import socket
import struct
import subprocess
import sys
import time

import frames

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.append(ROOT + "/tests/servers")
from free_port import free_port     # noqa: E402

MVE = os.environ.get("MVE", f"{ROOT}/build/mve")
LOG = "said.log"
FIN, SYN, ACK = 1, 2, 16


def fail(why):
    print(f"FAILED: {why}")
    sys.exit(1)


def mve(*words, status=0):
    p = subprocess.run([MVE, *words], capture_output=True, timeout=100)
    if p.returncode != status:
        fail(f"{words}: {p.returncode}\n{p.stdout!r}\n{p.stderr!r}")
    return p.stdout


# --- clients ------------------------------------------------------------------------------

def connect(family, address):
    for _ in range(600):
        s = socket.socket(family, socket.SOCK_STREAM)
        try:
            s.connect(address)
            return s
        except OSError:
            s.close()
            time.sleep(0.1)
    fail(f"nobody listens at {address}")


def get(s, n):
    got = b""
    while len(got) < n:
        more = s.recv(1 << 20)
        if not more:
            fail("the server has closed")
        got += more
    return got


def talk(family, address, words):
    """What a client said and got; of a file its length in place of its bytes."""
    s = connect(family, address)
    given, taken = b"", []
    for word in words:
        s.sendall(word)
        given += word
        if word == b"FILE\n":
            taken.append(len(get(s, os.path.getsize("file"))))
        else:
            taken.append(get(s, len(word)))
    port = s.getsockname()[1] if family != socket.AF_UNIX else None
    s.close()
    return port, given, taken


def record():
    shutil.rmtree(LOG, ignore_errors=True)
    if os.path.exists("near"):
        os.unlink("near")
    dice = random.Random(1)
    with open("file", "wb") as f:
        f.write(dice.randbytes(300000))
    tcp, six, udp = free_port(), free_port(), free_port(socket.SOCK_DGRAM)
    session = subprocess.Popen([MVE, "run", "--record", LOG, "--", sys.executable,
                                f"{HERE}/talker.py", str(tcp), str(six), str(udp), "near", "file"],
                               stderr=subprocess.DEVNULL)
    said = [talk(socket.AF_INET, ("127.0.0.1", tcp), [b"hello\n", dice.randbytes(200000), b"x"]),
            talk(socket.AF_INET, ("127.0.0.1", tcp), [b"FILE\n", b"after\n"]),
            talk(socket.AF_INET6, ("::1", six), [b"six\n", dice.randbytes(70001)]),
            talk(socket.AF_UNIX, "near", [b"near\n"])]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind(("127.0.0.1", 0))
        s.settimeout(60)
        for word in (b"one\n", b"", b"three\n" * 50, b"END\n"):
            s.sendto(word, ("127.0.0.1", udp))
            if s.recv(65536) != word:
                fail("the datagrams do not come back")
        datagrams = s.getsockname()[1]
    if session.wait(60):
        fail(f"the server ended with {session.returncode}")
    return said, datagrams, (tcp, six, udp)


# --- packets --------------------------------------------------------------------------------

def checksum(data):
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return total


def packets(data):
    """Of each: protocol, ends of it, TCP's header or None, the bytes, how many there were."""
    if struct.unpack_from("<IHHiIII", data) != (0xa1b23c4d, 2, 4, 0, 0, 65535, 101):
        fail("the file's head")
    at, last = 24, (0, 0)
    while at < len(data):
        *when, here, length = struct.unpack_from("<IIII", data, at)
        p, at = data[at + 16:at + 16 + here], at + 16 + here
        if len(p) != here or here > length or tuple(when) < last:
            fail(f"a packet's head at {at}")
        last = tuple(when)
        if p[0] >> 4 == 4:
            size, protocol, src, dst, rest = struct.unpack_from(">2xH", p)[0], p[9], p[12:16], \
                p[16:20], p[20:]
            if checksum(p[:20]) != 0xffff:
                fail("an IP header's checksum")
        else:
            size, protocol, src, dst, rest = struct.unpack_from(">4xH", p)[0] + 40, p[6], \
                p[8:24], p[24:40], p[40:]
        if size != length:
            fail("a packet's length")
        whole = length - (len(p) - len(rest))
        if here == length and checksum(src + dst + struct.pack(">HH", protocol, whole) + rest) \
           != 0xffff:
            fail(f"a checksum of protocol {protocol}")
        sport, dport = struct.unpack_from(">HH", rest)
        if protocol == 17:
            yield protocol, (src, sport), (dst, dport), None, rest[8:], whole - 8
        else:
            seq, ack, offset, flags = struct.unpack_from(">IIBB", rest, 4)
            head = offset >> 4 << 2
            yield protocol, (src, sport), (dst, dport), (seq, ack, flags), rest[head:], whole - head


class Stream:
    """One direction: each packet goes on where the last one ended."""
    def __init__(self):
        self.next, self.parts, self.over = None, [], False

    def take(self, seq, flags, body, length):
        if (self.next is None) != bool(flags & SYN) or (self.next not in (None, seq)):
            fail(f"sequence number {seq} behind {self.next}")
        self.next = (seq + length + bool(flags & (SYN | FIN))) & 0xffffffff
        self.over |= bool(flags & FIN)
        if length:
            self.parts.append(body if len(body) == length else length)

    def merged(self):
        """Bytes next to each other are one; lengths next to each other, too."""
        out = []
        for p in self.parts:
            if out and isinstance(out[-1], type(p)):
                out[-1] += p
            else:
                out.append(p)
        return out


def streams(data):
    found, datagrams = {}, []
    for protocol, src, dst, tcp, body, length in packets(data):
        if protocol == 17:
            datagrams.append((src, dst, body))
            continue
        this, other = found.setdefault((src, dst), Stream()), found.setdefault((dst, src), Stream())
        this.take(tcp[0], tcp[2], body, length)
        if tcp[2] & ACK and tcp[1] != other.next:
            fail("an acknowledgement of what was not sent")
    if any(not s.over for s in found.values()):
        fail("a stream without an end")
    return found, datagrams


def merged(parts):
    s = Stream()
    s.parts = list(parts)
    return s.merged()


# --- what is looked at ------------------------------------------------------------------------

def export(*words):
    mve("log", LOG, "export", "--pcap", "said.pcap", *words)
    if os.stat("said.pcap").st_mode & 0o77:
        fail("others may read the packets")
    if shutil.which("tcpdump"):
        p = subprocess.run(["tcpdump", "-nvvr", "said.pcap", *(["-Z", "root"] if not os.getuid()
                            else [])], capture_output=True, text=True)
        if p.returncode or "incorrect" in p.stdout or "bad" in p.stdout:
            fail(f"tcpdump: {p.stdout[-2000:]}{p.stderr}")
    with open("said.pcap", "rb") as f:
        return streams(f.read())


def stream_of(found, port):
    ends = [e for e in found if e[0][1] == port]
    if len(ends) != 1:
        fail(f"{len(ends)} streams from port {port}")
    return ends[0]


def check_streams(said, ports):
    found, datagrams = export()
    for (port, given, taken), own, ip in zip(said, (*ports[:1], *ports[:2], 1),
                                             ("127.0.0.1", "127.0.0.1", "::1", "127.0.0.2")):
        ends = stream_of(found, port) if port else \
            next((e for e in found if e[1][1] == own), None)
        family = socket.AF_INET6 if ":" in ip else socket.AF_INET
        if not ends or ends[1] != (socket.inet_pton(family, ip), own):
            fail(f"the server's end: {ends}")
        if found[ends].merged() != [given]:
            fail(f"what {port} said")
        if found[ends[::-1]].merged() != merged(taken):
            fail(f"what {port} got")
    return datagrams


def check_unknown():
    """Two clients of a server that does not ask who they are are two."""
    port = free_port()
    shutil.rmtree("unknown.log", ignore_errors=True)
    server = ("import ctypes, socket, os\n"
              f"s = socket.create_server(('127.0.0.1', {port}))\n"
              "for _ in range(2):\n"
              "    fd = ctypes.CDLL(None).accept(s.fileno(), None, None)\n"
              "    os.write(fd, os.read(fd, 100))\n"
              "    os.close(fd)\n")
    session = subprocess.Popen([MVE, "run", "--record", "unknown.log", "--", sys.executable, "-c",
                                server], stderr=subprocess.DEVNULL)
    for word in (b"one", b"two"):
        with connect(socket.AF_INET, ("127.0.0.1", port)) as s:
            s.sendall(word)
            if get(s, 3) != word:
                fail("the server says something else")
    session.wait(60)
    conns = json.loads(mve("log", "unknown.log", "connections", "--json"))
    if [c["peer"] for c in conns] != ["unknown"] * 2:
        fail(conns)
    mve("log", "unknown.log", "export", "--pcap", "unknown.pcap")
    with open("unknown.pcap", "rb") as f:
        found, _ = streams(f.read())
    ours = {e[0]: s.merged() for e, s in found.items() if e[1][1] == port}
    if sorted(ours.values()) != [[b"one"], [b"two"]]:
        fail(f"{found.keys()}: {ours}")


def check_conns(said, ports):
    conns = json.loads(mve("log", LOG, "connections", "--json"))
    streams = [c for c in conns if c["kind"] == "stream" and c["accepted"]]
    if [c["number"] if "number" in c else c["connection"] for c in conns] != \
       sorted(c["connection"] for c in conns) or len(streams) != 4:
        fail(conns)
    for c, (port, given, taken) in zip(streams, said):
        total = sum(t if isinstance(t, int) else len(t) for t in taken)
        if (c["taken"], c["given"]) != (len(given), total) or \
           (port and c["peer"].rsplit(":", 1)[1] != str(port)) or c["ended"] < c["began"]:
            fail(c)
    return streams


def check_filters(streams, said):
    third = streams[2]
    found, datagrams = export("--conn", str(third["connection"]))
    if len(found) != 2 or datagrams or \
       found[stream_of(found, said[2][0])].merged() != [said[2][1]]:
        fail("--conn of export")
    shown = mve("log", LOG, "show", "--conn", str(third["connection"])).decode().splitlines()
    if "accept" not in shown[0] or "six" not in "".join(shown) or "close(" not in shown[-1]:
        fail(shown)
    everything = mve("log", LOG, "show").decode().splitlines()
    numbers = [int(line.split()[0]) for line in everything]
    if len(set(numbers)) != len(numbers):
        fail("a number twice")
    # Times at which nothing, all, and the rest of it had come.
    if mve("log", LOG, "show", "--to", "+0") or mve("log", LOG, "show", "--from", "+99999"):
        fail("--from, --to")
    clock = everything[-1].split()[2]
    late = mve("log", LOG, "show", "--from", clock).decode().splitlines()
    early = mve("log", LOG, "show", "--to", clock).decode().splitlines()
    if not late or everything[-1] != late[-1] or len(early) + len(late) != len(everything):
        fail(f"a time divides: {len(early)} and {len(late)} of {len(everything)}")


# --- one that says more than it has ------------------------------------------------------------

def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return ~crc & 0xffffffff


def swell(data, most):
    """Each result of sendfile becomes `most`; the checksums of its frames are right again."""
    at, n = 64, 0
    while at + 64 <= len(data):
        size, kind = struct.unpack_from("<II", data, at + 8)
        cell, end = at + 64, at + 64 + size
        found = False
        while kind == 3 and cell < end:
            length, early, _, call, event = struct.unpack_from("<HBBHB", data, cell)
            result, = struct.unpack_from("<q", data, cell + 16)
            if event == 1 and call == 40 and result > 0:
                struct.pack_into("<q", data, cell + 16, most)
                found = True
            cell += (64 - 8 * early + length + 63) // 64 * 64
        if found:
            struct.pack_into("<I", data, at + 4, crc32c(data[at + 8:end]))
            n += 1
        at += 64 + (size + 63) // 64 * 64
    return n


def check_swollen():
    with open(f"{LOG}/000000.log", "rb") as f:
        data = bytearray(f.read())
    n = swell(data, (1 << 61) + 5)
    shutil.rmtree("swollen.log", ignore_errors=True)
    os.mkdir("swollen.log", 0o700)
    with open("swollen.log/000000.log", "wb") as f:
        f.write(data)
    mve("log", "swollen.log", "verify")
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 20, 64 << 20))
    mve("log", "swollen.log", "export", "--pcap", "swollen.pcap")
    if not n or os.path.getsize("swollen.pcap") > 2 * len(data):
        fail(f"{n} calls that say much make {os.path.getsize('swollen.pcap')} bytes")


def check_strange():
    """The words of its end are no text: they are shown, as JSON, too."""
    with open(f"{LOG}/000000.log", "rb") as f:
        segment, all_frames = frames.apart(f.read())
    fields, _ = all_frames[-1]
    if fields[frames.KIND] != frames.END:
        fail("the last frame is no end")
    fields[frames.CRC] = None
    shutil.rmtree("strange.log", ignore_errors=True)
    os.mkdir("strange.log", 0o700)
    with open("strange.log/000000.log", "wb") as f:
        f.write(frames.together(segment, all_frames[:-1] + [(fields, b"\xff\xfe")]))
    if b"\nended " not in mve("log", "strange.log") or \
       json.loads(mve("log", "strange.log", "--json"))["ended"] != "\ufffd\ufffd":
        fail("of strange words")


said, peer, ports = record()
datagrams = [(src[1], dst[1], body) for src, dst, body in check_streams(said, ports)
             if ports[2] in (src[1], dst[1])]
words = [b"one\n", b"", b"three\n" * 50, b"END\n"]
if datagrams != [d for w in words for d in ((peer, ports[2], w), (ports[2], peer, w))]:
    fail(datagrams)
check_filters(check_conns(said, ports), said)
check_unknown()
check_strange()
check_swollen()
for bad in (["show", "--from", "noon"], ["show", "--conn", "0"], ["export"],
            ["show", "--to", "25:00:00"]):
    mve("log", LOG, *bad, status=2)
mve("log", LOG, "export", "--pcap", "nowhere/said.pcap", status=3)
# What others may read is not written over, nor the recording itself.
with open("open.pcap", "w", opener=lambda *a: os.open(*a, mode=0o644)):
    os.chmod("open.pcap", 0o644)
for there in ("open.pcap", f"{LOG}/000000.log"):
    size = os.stat(there).st_size
    mve("log", LOG, "export", "--pcap", there, status=3)
    if os.stat(there).st_size != size:
        fail(f"{there} was written")
if mve("log", LOG, "export", "--pcap", "/dev/stdout") != mve("log", LOG, "export", "--pcap", "-"):
    fail("there are words in the packets")
made = json.loads(mve("log", LOG, "export", "--pcap", "said.pcap", "--json"))
if made["file"] != "said.pcap" or f"{made['packets']} packets of {made['connections']} conn" not in \
   mve("log", LOG, "export", "--pcap", "said.pcap").decode() or made["packets"] < 10:
    fail(made)
print("said: ok")
