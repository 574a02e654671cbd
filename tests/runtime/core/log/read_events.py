"""Prints the events of TensorBoard's files as JSON lines. Reads TFRecords and protocol buffers by
their specifications alone, and checks every checksum.

    read_events.py FILE...
"""

import io
import json
import struct
import sys
import wave


def crc32c(data):
    """Bit by bit (RFC 3720)."""
    remainder = 0xFFFFFFFF
    for byte in data:
        remainder ^= byte
        for _ in range(8):
            remainder = (remainder >> 1) ^ (0x82F63B78 if remainder & 1 else 0)
    return remainder ^ 0xFFFFFFFF


def masked(data):
    sum_ = crc32c(data)
    return ((sum_ >> 15 | sum_ << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(path):
    with open(path, "rb") as file:
        data = file.read()
    at = 0
    while at < len(data):
        length, check = struct.unpack_from("<QI", data, at)
        assert check == masked(data[at : at + 8]), f"{path}: length at {at}"
        record = data[at + 12 : at + 12 + length]
        assert len(record) == length, f"{path}: cut short at {at}"
        (check,) = struct.unpack_from("<I", data, at + 12 + length)
        assert check == masked(record), f"{path}: record at {at}"
        yield record
        at += 16 + length


def fields(message):
    """(number, value): ints, floats of fixed types, bytes."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        key = varint()
        kind = key & 7
        if kind == 0:
            value = varint()
        elif kind == 1:
            (value,) = struct.unpack_from("<d", message, at)
            at += 8
        elif kind == 5:
            (value,) = struct.unpack_from("<f", message, at)
            at += 4
        else:
            assert kind == 2, kind
            length = varint()
            value = message[at : at + length]
            assert len(value) == length
            at += length
        yield key >> 3, value


def one(message):
    return dict(fields(message))


def value_of(message):
    value = one(message)
    if 2 in value:
        return repr(value[2])
    if 4 in value:
        image = one(value[4])
        png = image[4]
        if png[:3] == b"\xff\xd8\xff":
            return f"jpeg {image[1]}x{image[2]}x{image[3]}"
        assert png[:8] == b"\x89PNG\r\n\x1a\n"
        assert struct.unpack(">II", png[16:24]) == (image[2], image[1])
        return f"png {image[1]}x{image[2]}x{image[3]}"
    if 5 in value:
        histogram = one(value[5])
        doubles = [
            list(struct.unpack(f"<{len(histogram[i]) // 8}d", histogram[i])) for i in (6, 7)
        ]
        return f"histogram {[histogram[i] for i in range(1, 6)]} {doubles[0]} {doubles[1]}"
    if 6 in value:
        audio = one(value[6])
        with wave.open(io.BytesIO(audio[4])) as file:
            assert file.getframerate() == audio[1] and file.getnchannels() == audio[2]
            assert file.getnframes() == audio[3] and audio[5] == b"audio/wav"
        return f"wav {audio[2]}x{audio[3]} {audio[1]:g}"
    tensor, metadata = one(value[8]), one(value[9])
    assert tensor[1] == 7 and tensor[2] == b"", tensor
    return one(metadata[1])[1].decode() + ": " + tensor[8].decode()


def node_of(message):
    """A NodeDef: name, op, inputs, shapes."""
    name = op = ""
    inputs, shapes = [], []
    for number, value in fields(message):
        if number == 1:
            name = value.decode()
        elif number == 2:
            op = value.decode()
        elif number == 3:
            inputs.append(value.decode())
        elif number == 5 and one(value)[1] == b"_output_shapes":
            for kind, shape in fields(one(one(value)[2])[1]):
                assert kind == 7
                shapes.append([one(dim)[1] for _, dim in fields(shape)])
    return [name, op, inputs, shapes]


for path in sys.argv[1:]:
    for record in records(path):
        event = one(record)
        shown = {"step": event[2]}
        assert event[1] > 1.6e9
        if 3 in event:
            shown["version"] = event[3].decode()
        if 7 in event:
            shown["status"] = one(event[7])[1]
        if 4 in event:
            shown["graph"] = [node_of(node) for number, node in fields(event[4]) if number == 1]
        for number, value in fields(event.get(5, b"")):
            assert number == 1
            shown[one(value)[1].decode()] = value_of(value)
        print(json.dumps(shown, ensure_ascii=False))
