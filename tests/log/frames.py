"""A recording's first file taken apart into frames, and put together with sums that are right."""
import struct

SEGMENT, HEADER = 64, 64
MAGIC, CRC, SIZE, KIND, NUMBER, TIME, AT, LANE, LIFE = range(9)
HEAD, OPEN, CELLS, GIVES, CLOSED, END = range(1, 7)
FIELDS = struct.Struct("<IIIIQQQIIiiII")


def table():
    for i in range(256):
        for _ in range(8):
            i = i >> 1 ^ (0x82f63b78 if i & 1 else 0)
        yield i


TABLE = list(table())


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc = TABLE[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xffffffff


def apart(data):
    """What it begins with; of each frame its header's fields and its payload."""
    frames, at = [], SEGMENT
    while at + HEADER <= len(data):
        fields = list(FIELDS.unpack_from(data, at))
        at += HEADER
        frames.append((fields, data[at:at + fields[SIZE]]))
        at += (fields[SIZE] + 63) // 64 * 64
    return data[:SEGMENT], frames


def together(segment, frames):
    """The same, renumbered; sums are made anew where there is none (None)."""
    out = [segment]
    for number, (fields, payload) in enumerate(frames):
        fields = list(fields)
        fields[SIZE] = len(payload)
        if fields[CRC] is None or fields[NUMBER] != number:
            fields[NUMBER], fields[CRC] = number, 0
            fields[CRC] = crc32c(FIELDS.pack(*fields)[8:] + payload)
        out += [FIELDS.pack(*fields), payload, bytes(-len(payload) % 64)]
    return b"".join(out)


def starts(data):
    """Where each frame begins."""
    segment, frames = apart(data)
    at = len(segment)
    for _, payload in frames:
        yield at
        at += HEADER + (len(payload) + 63) // 64 * 64
