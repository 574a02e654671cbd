#!/usr/bin/env python3
"""Makes the stick figures of this folder and poses.txt: needs numpy and pillow.

Written apart from the C++ code, by brute force in exact fractions: the centre of every pixel against
every shape. Coordinates are rounded to 16ths of a pixel first, as the C++ code says it does.

A line of poses.txt: file, size, line width, joint radius, then x and y of the 18 joints.
"""

import pathlib
import random
from fractions import Fraction
from math import floor

import numpy as np
from PIL import Image

FOLDER = pathlib.Path(__file__).parent
RED, GREEN, BLUE = (255, 0, 0), (0, 255, 0), (0, 0, 255)
BODY = [1, 2, 8, 11, 5]
LINES = [(RED, [(2, 3), (3, 4), (2, 8), (8, 9), (9, 10)]),
         (GREEN, [(16, 14), (14, 0), (0, 15), (15, 17), (0, 1)]),
         (BLUE, [(5, 6), (6, 7), (5, 11), (11, 12), (12, 13)])]
DISCS = [(RED, [2, 3, 4, 8, 9, 10]), (GREEN, [0, 1, 14, 15, 16, 17]), (BLUE, [5, 6, 7, 11, 12, 13])]

STANDING = [(32, 12), (32.3, 20), (24.5, 20.25), (20.1, 29), (18.7, 37.5), (40, 20.4), (44.6, 28.3),
            (46.2, 36.9), (27.5, 38), (26.4, 48.8), (25.9, 59.5), (36.5, 38.2), (37.3, 49.1),
            (38, 59.2), (30, 10.5), (34.1, 10.4), (27.2, 11.5), (36.8, 11.6)]


def squared_distance(point, start, end):
    """Of a point to the nearest one of a line."""
    (px, py), (ax, ay), (bx, by) = point, start, end
    dx, dy = bx - ax, by - ay
    square = dx * dx + dy * dy
    part = 0 if square == 0 else ((px - ax) * dx + (py - ay) * dy) / square
    part = min(max(part, Fraction(0)), Fraction(1))
    return (px - ax - part * dx) ** 2 + (py - ay - part * dy) ** 2


def is_in_polygon(point, corners):
    """Whether a ray to the right meets the border an odd number of times, or a point on the border."""
    px, py = point
    crossings = 0
    for i, (ax, ay) in enumerate(corners):
        bx, by = corners[i - 1]
        if squared_distance(point, (ax, ay), (bx, by)) == 0:
            return True
        if min(ay, by) <= py < max(ay, by):
            crossings += ax + (py - ay) / (by - ay) * (bx - ax) > px
    return crossings % 2 == 1


def draw(joints, size, line_width, joint_radius):
    image = np.zeros((size, size, 3), np.uint8)
    places = [tuple(Fraction(floor(Fraction(v) * 16 + Fraction(1, 2)), 16) for v in joint)
              for joint in joints]
    is_there = [not (x <= 0 and y <= 0) for x, y in joints]
    half_line = Fraction(floor(Fraction(line_width) * 8 + Fraction(1, 2)), 16)
    disc = Fraction(joint_radius) + Fraction(1, 2)

    def paint(colour, is_inside):
        for row in range(size):
            for column in range(size):
                if is_inside((column + Fraction(1, 2), row + Fraction(1, 2))):
                    image[row, column] = colour

    body = [places[i] for i in BODY if is_there[i]]
    if len(body) >= 3:
        paint(GREEN, lambda p: is_in_polygon(p, body))
    for colour, lines in LINES:
        for a, b in lines:
            if is_there[a] and is_there[b]:
                paint(colour, lambda p: squared_distance(p, places[a], places[b]) <= half_line ** 2)
    for colour, points in DISCS:
        for i in points:
            if is_there[i]:
                paint(colour, lambda p: squared_distance(p, places[i], places[i]) <= disc ** 2)
    return image


def without(joints, absent):
    return [(0, 0) if i in absent else joint for i, joint in enumerate(joints)]


def main():
    scaled = [(x * 2, y * 2) for x, y in STANDING]
    crossed = list(STANDING)
    crossed[2], crossed[5] = crossed[5], crossed[2]  # the body overlaps itself
    numbers = random.Random(1)
    far = [(numbers.uniform(-60, 120), numbers.uniform(-60, 120)) for _ in range(18)]
    far[4], far[10], far[0] = (-3.5, 20.0), (30.25, -0.5), (-2.0, -3.0)  # the last one is absent
    cases = {
        "standing": (STANDING, 64, 4, 3),
        "thin": (STANDING, 64, 2, 1),
        "odd-widths": (STANDING, 64, 3.3, 1.75),
        "whole-numbers": ([(round(x), round(y)) for x, y in STANDING], 64, 4, 3),
        "large": (scaled, 128, 4, 3),
        "absent-arm-and-nose": (without(STANDING, {0, 3, 17}), 64, 4, 3),
        "absent-shoulder-and-hip": (without(STANDING, {2, 11}), 64, 4, 3),
        "absent-trunk": (without(STANDING, {1, 2, 5, 8}), 64, 4, 3),
        "absent-all": (without(STANDING, set(range(18))), 64, 4, 3),
        "crossed": (crossed, 64, 4, 3),
        "outside": (far, 64, 4, 3),
        "cut-off": ([(x * 1.5 - 20, y * 1.5 - 16) for x, y in STANDING], 64, 4, 3),
    }
    lines = []
    for name, (joints, size, line_width, joint_radius) in cases.items():
        Image.fromarray(draw(joints, size, line_width, joint_radius)).save(FOLDER / f"{name}.png")
        numbers = " ".join(repr(float(v)) for joint in joints for v in joint)
        lines.append(f"{name}.png {size} {line_width} {joint_radius} {numbers}\n")
    (FOLDER / "poses.txt").write_text("".join(lines))


if __name__ == "__main__":
    main()
