#!/usr/bin/env python3
"""Makes the small pictures of this folder and expected.txt: needs numpy and pillow.

Most PNGs are written here by hand, because pillow cannot write every kind of PNG; what pillow can
read is checked against pillow's own decoding. The JPEGs are made and decoded by pillow.

A line of expected.txt: file, largest value, C, H, W, then the C * H * W values.
"""

import pathlib
import struct
import zlib

import numpy as np
from PIL import Image

FOLDER = pathlib.Path(__file__).parent
GREY, RGB, PALETTE, GREY_ALPHA, RGB_ALPHA = 0, 2, 3, 4, 6
ADAM7 = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2),
         (1, 0, 2, 1)]  # first row, first column, row step, column step
lines = []


def chunk(kind, content):
    return (struct.pack(">I", len(content)) + kind + content
            + struct.pack(">I", zlib.crc32(kind + content)))


def rows(pixels, depth):
    """Filter byte 0 and the packed samples of each row of [H, W, C]."""
    packed = b""
    for row in pixels:
        if depth == 16:
            content = row.astype(">u2").tobytes()
        elif depth == 8:
            content = row.astype(np.uint8).tobytes()
        else:
            bits = "".join(format(int(v), f"0{depth}b") for v in row.ravel())
            bits += "0" * (-len(bits) % 8)
            content = bytes(int(bits[i:i + 8], 2) for i in range(0, len(bits), 8))
        packed += b"\0" + content
    return packed


def write_png(name, pixels, depth, kind, extra=(), interlaced=False):
    height, width, _ = pixels.shape
    header = struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, int(interlaced))
    passes = ADAM7 if interlaced else [(0, 0, 1, 1)]
    data = b"".join(rows(pixels[y::dy, x::dx], depth) for y, x, dy, dx in passes
                    if y < height and x < width)
    (FOLDER / name).write_bytes(
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + b"".join(chunk(*e) for e in extra)
        + chunk(b"IDAT", zlib.compress(data, 9)) + chunk(b"IEND", b""))


def expect(name, values, largest=255):
    """`values` is [H, W, C]."""
    planar = values.transpose(2, 0, 1)
    lines.append(" ".join(map(str, [name, largest, *planar.shape, *planar.ravel()])))


def by_pillow(name, mode):
    values = np.array(Image.open(FOLDER / name).convert(mode))
    return values if values.ndim == 3 else values[:, :, None]


def main():
    rng = np.random.RandomState(0)

    def noise(channels, depth, height=5, width=7):
        return rng.randint(0, 2**depth, (height, width, channels))

    for depth in (1, 2, 4, 8):
        name = f"grey-{depth}.png"
        pixels = noise(1, depth)
        write_png(name, pixels, depth, GREY)
        expect(name, pixels * (255 // (2**depth - 1)))
        assert np.array_equal(by_pillow(name, "L"), pixels * (255 // (2**depth - 1)))
    for kind, stored, kept, what in ((GREY, 1, 1, "grey"), (RGB, 3, 3, "rgb"),
                                     (GREY_ALPHA, 2, 1, "grey-alpha"),
                                     (RGB_ALPHA, 4, 3, "rgb-alpha")):
        for depth in (8, 16):
            if (what, depth) == ("grey", 8):
                continue
            name = f"{what}-{depth}.png"
            pixels = noise(stored, depth)
            write_png(name, pixels, depth, kind)
            expect(name, pixels[:, :, :kept], 2**depth - 1)
            if depth == 8:
                assert np.array_equal(by_pillow(name, "L" if kept == 1 else "RGB"),
                                      pixels[:, :, :kept])
    for depth in (1, 2, 4, 8):
        colours = rng.randint(0, 256, (2**depth, 3), dtype=np.uint8)
        pixels = noise(1, depth)
        for what, extra in (("palette", []), ("palette-alpha", [(b"tRNS", b"\x00\x80")])):
            name = f"{what}-{depth}.png"
            write_png(name, pixels, depth, PALETTE, [(b"PLTE", colours.tobytes()), *extra])
            expect(name, colours[pixels[:, :, 0]])
            assert np.array_equal(by_pillow(name, "RGBA")[:, :, :3], colours[pixels[:, :, 0]])
    pixels = noise(1, 8)
    transparent = struct.pack(">H", pixels[0, 0, 0])
    write_png("grey-transparent.png", pixels, 8, GREY, [(b"tRNS", transparent)])
    expect("grey-transparent.png", pixels)
    pixels = noise(3, 8)
    transparent = struct.pack(">HHH", *pixels[0, 0])
    write_png("rgb-transparent.png", pixels, 8, RGB, [(b"tRNS", transparent)])
    expect("rgb-transparent.png", pixels)
    for what, kind, channels in (("grey", GREY, 1), ("rgb", RGB, 3)):
        pixels = noise(channels, 8, 9, 11)
        name = f"{what}-interlaced.png"
        write_png(name, pixels, 8, kind, interlaced=True)
        expect(name, pixels)
        assert np.array_equal(by_pillow(name, "L" if channels == 1 else "RGB"), pixels)

    ramp = np.linspace(0, 255, 24 * 16 * 3).reshape(24, 16, 3)
    colour = Image.fromarray((ramp[:, :, [0, 1, 2]] * [1, 0.5, 0.25]).astype(np.uint8))
    # Without subsampling no decoder has to choose how to interpolate colours.
    colour.save(FOLDER / "rgb.jpg", quality=90, subsampling=0)
    colour.save(FOLDER / "rgb-progressive.jpg", quality=90, subsampling=0, progressive=True)
    colour.convert("L").save(FOLDER / "grey.jpg", quality=90)
    colour.convert("CMYK").save(FOLDER / "cmyk.jpg", quality=90)
    for name in ("rgb.jpg", "rgb-progressive.jpg", "grey.jpg", "cmyk.jpg"):
        expect(name, by_pillow(name, "L" if name == "grey.jpg" else "RGB"))

    # As a camera writes it: a thumbnail, which is a JPEG of its own, in the Exif data before the
    # picture (TIFF 6.0; its second directory has the thumbnail's place, 0x201, and size, 0x202).
    thumbnail = (FOLDER / "grey.jpg").read_bytes()
    exif = b"Exif\0\0MM\0*" + struct.pack(">IHIHHHIIHHIII", 8, 0, 14, 2, 0x201, 4, 1, 44, 0x202, 4,
                                             1, len(thumbnail), 0)
    colour.save(FOLDER / "thumbnail.jpg", quality=90, subsampling=0, exif=exif + thumbnail)
    expect("thumbnail.jpg", by_pillow("thumbnail.jpg", "RGB"))

    # WebP without losses has the pixels of the PNG. A camera on its side writes orientation 6.
    flat = Image.open(FOLDER / "rgb-8.png").convert("RGB")
    flat.save(FOLDER / "rgb-lossless.webp", lossless=True, exact=True)
    Image.open(FOLDER / "rgb-alpha-8.png").save(FOLDER / "rgb-alpha-lossless.webp", lossless=True,
                                                exact=True)
    sideways = Image.Exif()
    sideways[0x0112] = 6
    flat.save(FOLDER / "sideways.png", exif=sideways)
    flat.save(FOLDER / "sideways.webp", lossless=True, exact=True, exif=sideways)
    Image.open(FOLDER / "rgb.jpg").save(FOLDER / "sideways.jpg", quality=90, exif=sideways)

    # What ImageFolder's `size` and `channels` must give: pillow's own resizing and grey.
    rgb = Image.open(FOLDER / "rgb.jpg").convert("RGB")
    small = np.array(rgb.resize((7, 10), Image.Resampling.BILINEAR))
    expect("rgb.jpg@10x7", small)
    expect("rgb.jpg@grey", np.array(rgb.convert("L"))[:, :, None])
    (FOLDER / "expected.txt").write_text("\n".join(lines) + "\n")


main()
