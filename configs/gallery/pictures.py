"""What the gallery and the page of benchmarks draw: rows and strips of pictures (PNG, JPEG), curves, points and bars
(SVG). Texts are grey and the ground is transparent, so that both are read on light and on dark pages."""

import numpy as np
from PIL import Image, ImageDraw, ImageFont

MOST_BYTES = 60_000
GREY = "#808080"
COLOURS = ["#3b8fd0", "#e69f00", "#009e73", "#cc79a7"]  # after Okabe and Ito
FONT = ImageFont.load_default(size=13)


def picture(array):
    """Of [C, H, W] or [H, W], bytes or floats in [-1, 1]; of a file by its path."""
    if not isinstance(array, np.ndarray):
        return Image.open(array).convert("RGB")
    if array.dtype != np.uint8:
        array = np.clip((array + 1) * 127.5, 0, 255).astype(np.uint8)
    array = array.transpose(1, 2, 0) if array.ndim == 3 else array
    return Image.fromarray(array[..., 0] if array.shape[-1] == 1 else array).convert("RGB")


def resized(image, width, height):
    return image.resize((int(width), int(height)), Image.NEAREST if width >= image.width else Image.LANCZOS)


def rows(labelled, size):
    """`labelled`: for each row its label, and arrays that become `size` pixels large."""
    left = int(max(FONT.getlength(label) for label, _ in labelled)) + 10
    canvas = Image.new("RGBA", (left + len(labelled[0][1]) * (size + 3), len(labelled) * (size + 3)))
    for row, (label, arrays) in enumerate(labelled):
        top = row * (size + 3)
        ImageDraw.Draw(canvas).text((left - 8, top + size // 2), label, GREY, FONT, "rm")
        for i, one in enumerate(arrays):
            canvas.paste(resized(picture(one), size, size), (left + i * (size + 3), top))
    return canvas


def strip(labelled, scale=1.0, crop=None):
    """Pictures side by side, each above its label; `crop` is a box of each."""
    images = [picture(one).crop(crop) if crop else picture(one) for _, one in labelled]
    images = [resized(one, one.width * scale, one.height * scale) for one in images]
    below = 22 if any(label for label, _ in labelled) else 0
    canvas = Image.new("RGBA", (sum(one.width + 8 for one in images) - 8, images[0].height + below))
    left = 0
    for (label, _), one in zip(labelled, images):
        canvas.paste(one, (left, 0))
        ImageDraw.Draw(canvas).text((left + one.width // 2, one.height + 4), label, GREY, FONT, "mt")
        left += one.width + 8
    return canvas


def save(image, path):
    """Writes `path`.png, or a JPEG on white where that would be too large; returns the file."""
    file = path.with_suffix(".png")
    image.save(file, optimize=True)
    if file.stat().st_size < MOST_BYTES:
        return file
    file.unlink()
    white = Image.new("RGB", image.size, "white")
    white.paste(image, mask=image.getchannel("A"))
    file = path.with_suffix(".jpg")
    quality = 95
    while not file.exists() or file.stat().st_size >= MOST_BYTES:
        quality -= 5
        white.save(file, quality=quality, optimize=True)
    return file


def svg(width, height, parts):
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
            f'font-family="sans-serif" font-size="12" fill="{GREY}">')
    return "\n".join([head, *parts, "</svg>", ""])


def text(x, y, words, anchor="start", colour=GREY):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{words}</text>'


def ticks(low, high):
    """Some five round numbers."""
    step = 10 ** np.floor(np.log10((high - low) / 2 or 1))
    step *= next(factor for factor in (1, 2, 5, 10) if (high - low) / (step * factor) <= 5)
    return [round(k * step, 10) for k in range(int(np.ceil(low / step)), int(high / step) + 1)]


def chart(series, x_label, y_label, points=False, log=False):
    """`series`: name -> (xs, ys), as lines or as points."""
    left, top, right, bottom = 56, 12, 410, 220
    scale = np.log10 if log else np.asarray
    xs, ys = ([np.asarray(pair[i], float) for pair in series.values()] for i in (0, 1))
    (x0, x1), (y0, y1) = ((all_.min(), all_.max()) for all_ in (np.concatenate(xs), scale(np.concatenate(ys))))
    at_x = lambda x: left + (x - x0) / ((x1 - x0) or 1) * (right - left)  # noqa: E731
    at_y = lambda y: bottom - (scale(y) - y0) / ((y1 - y0) or 1) * (bottom - top)  # noqa: E731
    marks = [10.0**k for k in range(int(np.ceil(y0)), int(np.floor(y1)) + 1)] if log else ticks(y0, y1)
    parts = [f'<path d="M{left} {at_y(tick):.1f}H{right}" stroke="{GREY}" stroke-opacity=".25"/>'
             + text(left - 6, at_y(tick) + 4, f"{tick:,.10g}", "end") for tick in marks]
    parts += [text(at_x(tick), bottom + 16, f"{tick:,.10g}", "middle") for tick in ticks(x0, x1)]
    parts += [text(right, bottom + 34, x_label, "end"), text(left + 4, top + 2, y_label)]
    for i, (name, colour) in enumerate(zip(series, COLOURS)):
        placed = [f"{a:.1f},{b:.1f}" for a, b in zip(at_x(xs[i]), at_y(ys[i]))]
        if points:
            dots = "".join(f"M{place}h0" for place in placed)
            parts.append(f'<path d="{dots}" stroke="{colour}" stroke-width="4" stroke-linecap="round" opacity=".6"/>')
        else:
            parts.append(f'<polyline points="{" ".join(placed)}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(text(right + 12, top + 16 + 18 * i, name, colour=colour))
    return svg(560, 260, parts)
