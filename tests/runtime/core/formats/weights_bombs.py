"""Small files of weights that would take all memory, or hours, in a folder. The numbers are how often each repeats."""
import struct
import sys
import zipfile
import zlib

folder = sys.argv[1] + "/"
names = ["none", "empty", "ordered", "global", "names", "square", "deep", "sizes", "overlap"]
counts = dict(zip(names, map(int, sys.argv[2:])))


def text(value):
    return b"X" + struct.pack("<I", len(value)) + value


def put(value, place):
    return value + b"r" + struct.pack("<I", place)


def get(place):
    return b"j" + struct.pack("<I", place)


def number(value):
    return b"J" + struct.pack("<i", value)


def tensor(sizes=b"K\x01\x85", key=b"0"):
    storage = b"(" + text(b"storage") + b"ctorch\nFloatStorage\n" + text(key) + text(b"cpu") + b"K\x01tQ"
    return b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + b"K\x00" + sizes * 2 + b"\x89}tR"


def write(name, pickle):
    with zipfile.ZipFile(folder + name + ".pt", "w") as archive:
        archive.writestr("x/data.pkl", b"\x80\x02" + pickle + b".")
        archive.writestr("x/data/0", b"\0" * 4)


n = counts["none"]
write("none", b"}" + text(b"k") + b"(" + b"N" * n + b"ts" + text(b"w") + tensor() + b"s")
n = counts["empty"]
write("empty", b"}" + text(b"k") + b"(" + b"]" * n + b"ts" + text(b"w") + tensor() + b"s")
n = counts["ordered"]
pairs = put(b"](" + b"NN\x86" * n + b"e", 1)
write("ordered", b"}" + text(b"k") + b"(" + pairs + (b"ccollections\nOrderedDict\n" + get(1) + b"\x85R") * n + b"ts")
n = counts["global"]
write("global", b"}" + text(b"k") + b"(" + put(text(b"x" * (10 * n)), 1) + (get(1) + get(1) + b"\x93") * n + b"ts")
n = counts["names"]
inner = put(b"}(" + b"".join(text(b"%d" % i) + (put(tensor(), 1) if i == 0 else get(1)) for i in range(n)) + b"u", 2)
write("names", b"}" + text(b"x" * (200 * n)) + inner + b"s")
n = counts["square"]
numbers = put(b"}(" + b"".join(number(i) + b"N" for i in range(n)) + b"u", 1)
write("square", b"}(" + b"".join(number(i) + (numbers if i == 0 else get(1)) for i in range(n)) + b"u")
n = counts["deep"]
nest = b"}"
for i in range(n):
    nest = b"}(K\x00" + put(nest, i) + b"K\x01" + get(i) + b"u"
write("deep", nest)
n = counts["sizes"]
write("sizes", b"}(K\x00" + tensor(b"(" + b"K\x01" * n + b"t") + b"u")

# Entries that are the same bytes, each one further: what is left out of a header's length says where its bytes begin.
n = counts["overlap"]
body = bytes(range(256)) * (400 * n)
pickle = b"\x80\x02}(" + b"".join(number(i) + tensor(key=b"%05d" % i) for i in range(n)) + b"u."
parts = [(b"x/data.pkl", pickle)] + [(b"x/data/%05d" % i, memoryview(body)[i:i + len(body) - n]) for i in range(n)]
heads = sum(30 + len(name) for name, _ in parts[1:])
begin = 30 + len(parts[0][0]) + len(pickle)
file, directory = bytearray(), bytearray()
for i, (name, content) in enumerate(parts):
    skipped = 0 if i == 0 else begin + heads + i - 1 - len(file) - 30 - len(name)
    fields = struct.pack("<HHHHHIIIHH", 10, 0, 0, 0, 0, zlib.crc32(content), len(content), len(content), len(name), skipped)
    directory += b"PK\1\2" + b"\0\0" + fields[:-2] + b"\0" * 12 + struct.pack("<I", len(file)) + name
    file += b"PK\3\4" + fields + name + (pickle if i == 0 else b"")
file += body
end = b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, len(parts), len(parts), len(directory), len(file), 0)
open(folder + "overlap.pt", "wb").write(file + directory + end)
