"""Runs the benchmarks of BENCHMARKS.md, some 30 minutes, and writes that page and its chart: `make bench-page`.

    page.py [ROWS]

ROWS is a file that an earlier call wrote, build/bench_rows.jsonl: the page is made of that.
"""

import datetime
import json
import os
import pathlib
import subprocess
import sys
import time

TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TREE / "configs" / "gallery"))
from machine import Others  # noqa: E402
from pictures import COLOURS, GREY, svg, text  # noqa: E402

NAMES = ["frameworks", "vunet", "pix2pix", "python_data", "outputs", "start"]
ROWS = TREE / "build" / "bench_rows.jsonl"
SIDE_BY_SIDE = "Whole programs side by side"


def output_of(*words):
    return subprocess.run(words, cwd=TREE, capture_output=True, text=True, check=True).stdout


def measure():
    """Writes ROWS: the circumstances, then what the benchmarks print."""
    python = os.environ.get("STEPOP_BENCH_PYTHON", TREE / ".venv" / "bin" / "python3")
    kinds = output_of(python, "-B", "tests/bench/framework_loops.py", "kinds").splitlines()
    with open("/proc/cpuinfo") as file:
        processor = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "?")
    packages = {package for line in kinds for package in line.partition(" ")[2].split(", ") if package}
    about = {"date": str(datetime.date.today()), "commit": output_of("git", "rev-parse", "--short", "HEAD").strip(),
             "cores": os.cpu_count(), "threads": int(os.environ.get("OMP_NUM_THREADS", os.cpu_count())),
             "processor": processor, "versions": sorted(packages),
             "missing": [line.strip() for line in kinds if " " not in line.strip()]}
    ROWS.unlink(missing_ok=True)
    others, start = Others(), time.monotonic()
    subprocess.run([TREE / "build" / "stepop_bench", *NAMES], check=True, env={**os.environ, "STEPOP_BENCH_ROWS": ROWS})
    os.environ.pop("OMP_NUM_THREADS", None)  # it has conditions of its own
    side_by_side = output_of(python, "-B", "tests/bench/side_by_side.py", "--rounds", "5")
    with open(ROWS, "a") as file:
        print(json.dumps({"title": SIDE_BY_SIDE}), json.dumps({"table": side_by_side}), sep="\n", file=file)
    about |= {"busy": others.are_busy(), "minutes": round((time.monotonic() - start) / 60)}
    ROWS.write_text(json.dumps(about) + "\n" + ROWS.read_text())


def chart(rows):
    """A bar for each framework and batch: how many times faster stepop is."""
    left, unit = 240, 330 / max(row["ratio"] for row in rows)
    parts, y = [], 0
    for what in dict.fromkeys(row["what"] for row in rows):
        parts.append(text(0, y + 18, f"{what}: stepop is so many times as fast as"))
        y += 28
        for row in (row for row in rows if row["what"] == what):
            width = row["ratio"] * unit
            parts += [text(left - 8, y + 13, row["baseline"], "end"),
                      f'<rect x="{left}" y="{y + 1}" width="{width:.1f}" height="16" fill="{COLOURS[0]}"/>',
                      text(left + width + 6, y + 13, f"{row['ratio']:.2f}")]
            y += 20
    line = left + unit
    return svg(640, y + 8, [*parts, f'<path d="M{line:.1f} 24V{y}" stroke="{GREY}" stroke-dasharray="3 3"/>'])


def page(about, parts):
    missing = f" Not installed, so not measured: {', '.join(about['missing'])}." if about["missing"] else ""
    busy = " Other work kept the machine busy: the numbers say little." if about["busy"] else ""
    lines = ["# Benchmarks", "", f"Measured on {about['date']} by `make bench-page` at commit {about['commit']}, with "
             f"OMP_NUM_THREADS={about['threads']} on {about['cores']} cores of {about['processor']}, in "
             f"{about['minutes']} minutes; {', '.join(about['versions'])}.{missing}{busy}", "",
             "stepop and a baseline take turns in one run, on the same data. The ratio is the median over the turns: "
             "how many times as fast stepop is; below 1 it is slower. [What each of them does](README.md). edflow is "
             "missing: it needs chainer, which no longer installs.", "",
             "![How many times as fast stepop is as other frameworks](benchmarks.svg)", ""]
    for title, rows in parts.items():
        if title == SIDE_BY_SIDE:
            lines += [f"## {title}", "", "LeNet on digits of 28x28 with Adam, or SGD with momentum, the default config, steps a second; in brackets how "
                      "many times as fast stepop is. Crowded: an endless loop on each processor. By `side_by_side.py`.", "", rows[0]["table"]]
            continue
        lines += [f"## {title}", "", "| | against | ratio | stepop | the other |", "|---|---|---|---|---|"]
        lines += ["| {what} | {baseline} | {ratio:.2f} | {ours} | {of_baseline} |".format(**row) for row in rows]
        lines.append("")
    return "\n".join(lines)


def main():
    if len(sys.argv) == 1:
        measure()
    about, *lines = [json.loads(line) for line in open(sys.argv[1] if len(sys.argv) > 1 else ROWS)]
    parts = {}
    for line in lines:
        rows = parts.setdefault(line["title"], []) if "title" in line else rows.append(line) or rows
    here = TREE / "tests" / "bench"
    (here / "benchmarks.svg").write_text(chart(next(iter(parts.values()))))
    (here / "BENCHMARKS.md").write_text(page(about, parts))


if __name__ == "__main__":
    main()
