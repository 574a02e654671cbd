"""What a notebook shows of a run: its state, curves, and its last pictures."""

from __future__ import annotations

import math
import os
from html import escape
from typing import Dict, List, Tuple

from .files import Images

Points = List[Tuple[int, float]]

WIDTH, HEIGHT = 300, 150  # of the lines of a plot, in pixels
LEFT, TOP, BOTTOM = 62, 8, 20
MOST_PLOTS = 6
MOST_POINTS = 300  # of a curve
MOST_PICTURES = 8
MOST_PICTURE_BYTES = 1_000_000
# The palette of Okabe and Ito: people who cannot tell red from green can tell these apart.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9")
STATE_COLOURS = {"running": "#0072b2", "ended": "#009e73", "failed": "#d55e00", "killed": "#d55e00"}


def page_of(
    name: str, state: str, error: str, rows: Dict[int, Dict[str, float]], images: Images
) -> str:
    """HTML with all that it shows in it. `rows`: what the run logged, by step."""
    plots = group_curves(rows)
    shown = [_plot(name, curves) for name, curves in list(plots.items())[:MOST_PLOTS]]
    pictures = [
        image._repr_html_()
        for image in images.last(MOST_PICTURES)
        if _size(image.path) <= MOST_PICTURE_BYTES
    ]
    parts = [_head(name, state, rows) + _error(error), *shown]
    left_out = len(plots) - len(shown)
    if left_out > 0:
        parts.append(f"<div>{left_out} more in <code>run.metrics</code></div>")
    parts.append(f"<div>{''.join(pictures)}</div>")
    return f'<div style="font-family:sans-serif;font-size:13px">{"".join(parts)}</div>'


def _head(name: str, state: str, rows: Dict[int, Dict[str, float]]) -> str:
    last = rows[max(rows)] if rows else {}
    words = [f"step {max(rows, default=0):,}"]
    words += [f"epoch {last['epoch']:.4g}"] if "epoch" in last else []
    words += [f"{last['time']:,.0f} s of training"] if "time" in last else []
    colour = STATE_COLOURS.get(state, "#888888")
    return (
        f'<div style="margin:4px 0"><b>{escape(name)}</b> &nbsp;'
        f'<span style="color:{colour}">&#9679;</span> {escape(state)} &nbsp;'
        f'<span style="opacity:.7">{escape(", ".join(words))}</span></div>'
    )


def _error(error: str) -> str:
    style = "white-space:pre-wrap;border-left:3px solid #d55e00;padding:2px 8px;margin:4px 0"
    return error and f'<pre style="{style}">{escape(error)}</pre>'


def _size(path: "os.PathLike[str]") -> float:
    try:
        return os.stat(path).st_size
    except OSError:
        return math.inf


def group_curves(rows: Dict[int, Dict[str, float]]) -> Dict[str, Dict[str, Points]]:
    """The curves of each plot: numbers whose names end alike, such as `train/log_op/loss` and
    `validation/eval_op/loss`. What the runtime logs of itself is left out."""
    curves: Dict[str, Points] = {}
    for step in sorted(rows):
        for name, value in rows[step].items():
            if "/" in name and not name.startswith("runtime/") and math.isfinite(value):
                curves.setdefault(name, []).append((step, value))
    plots: Dict[str, Dict[str, Points]] = {}
    for name, points in curves.items():
        plots.setdefault(name.rpartition("/")[2], {})[name] = points
    return plots


def thinned(points: Points, most: int = MOST_POINTS) -> Points:
    """Fewer points: the lowest and the highest of each part, so that no peak is lost."""
    size = math.ceil(2 * len(points) / most)
    if size <= 2:
        return points
    kept: Points = []
    for first in range(0, len(points), size):
        part = points[first : first + size]
        ends = {min(part, key=lambda p: p[1]), max(part, key=lambda p: p[1])}
        kept += sorted(ends)
    return kept


def _plot(title: str, curves: Dict[str, Points]) -> str:
    steps = [step for points in curves.values() for step, _ in points]
    values = [value for points in curves.values() for _, value in points]
    first, last = min(steps), max(steps)
    low, high = min(values), max(values)
    if low == high:
        low, high = low - abs(low) / 2 - 1e-9, high + abs(high) / 2 + 1e-9

    def place(step: float, value: float) -> str:
        x = LEFT + WIDTH * (step - first) / max(last - first, 1)
        y = TOP + HEIGHT * (1 - (value / 2 - low / 2) / (high / 2 - low / 2))
        return f"{x:.1f},{y:.1f}"

    lines = [_axes(first, last, low, high)]
    names = []
    for i, (name, points) in enumerate(curves.items()):
        colour = COLOURS[i % len(COLOURS)]
        drawn = [place(*point) for point in thinned(points)]
        if len(drawn) > 1:
            style = f'fill="none" stroke="{colour}" stroke-width="1.5" stroke-linejoin="round"'
            lines.append(f'<polyline {style} points="{" ".join(drawn)}"/>')
        x, y = drawn[-1].split(",")
        lines.append(f'<circle cx="{x}" cy="{y}" r="2.5" fill="{colour}"/>')
        names.append(
            f'<div><span style="color:{colour}">&#9644;</span> '
            f"{escape(name)} {points[-1][1]:.4g}</div>"
        )
    size = f'width="{LEFT + WIDTH + 8}" height="{TOP + HEIGHT + BOTTOM}"'
    return (
        f'<figure style="display:inline-block;margin:4px 12px 4px 0;vertical-align:top">'
        f'<svg {size} xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(title)}" '
        f'font-family="sans-serif" font-size="11" fill="currentColor">{"".join(lines)}</svg>'
        f'<figcaption style="font-size:85%">{"".join(names)}</figcaption></figure>'
    )


def _axes(first: int, last: int, low: float, high: float) -> str:
    right, bottom = LEFT + WIDTH, TOP + HEIGHT
    frame = f"M{LEFT},{TOP}V{bottom}H{right}"
    middle = f"M{LEFT},{TOP + HEIGHT / 2}H{right}"
    texts = [
        (LEFT - 4, bottom, "end", f"{low:.3g}"),
        (LEFT - 4, TOP + HEIGHT / 2 + 4, "end", f"{low / 2 + high / 2:.3g}"),
        (LEFT - 4, TOP + 8, "end", f"{high:.3g}"),
        (LEFT, bottom + 14, "start", f"{first:,}"),
        (right, bottom + 14, "end", f"step {last:,}"),
    ]
    labels = (f'<text x="{x}" y="{y}" text-anchor="{at}">{t}</text>' for x, y, at, t in texts)
    return (
        f'<path d="{frame}" fill="none" stroke="currentColor" opacity=".5"/>'
        f'<path d="{middle}" fill="none" stroke="currentColor" opacity=".15"/>{"".join(labels)}'
    )
