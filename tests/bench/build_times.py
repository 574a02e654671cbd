#!/usr/bin/env python3
"""What compiling costs, measured anew: `tests/bench/build_times.py [VARIANT ...]`.

Each variant builds the target `stepop` in a folder of its own with ccache off, and prints the
processor's time (user), the time that passed, and the ratio to `as it is`. All of them take an hour
on two cores. `--sample` before the variants compiles a tenth of the files, of each layer some: a
quarter of an hour. `edits` takes five minutes and times what one waits for after an edit.
"""
import os
import resource
import subprocess
import sys
import tempfile
import time

TREE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
VARIANTS = {
    "as it is": [],
    "GCC": ["-DCMAKE_CXX_COMPILER=g++"],
    "-O3": ["-DCMAKE_CXX_FLAGS_RELEASE=-O3 -DNDEBUG"],
    "-O1": ["-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG"],
    "no precompiled headers": ["-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON"],
    "fmt in every file": ["-DCMAKE_CXX_FLAGS=-DFMT_HEADER_ONLY"],
    "each file by itself": ["-DSTEPOP_UNITY=OFF"],
    "each file by itself, fmt in every file, no precompiled headers": [
        "-DSTEPOP_UNITY=OFF", "-DCMAKE_CXX_FLAGS=-DFMT_HEADER_ONLY",
        "-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON"],
}
SAMPLE = ["runtime/train/loop/", "runtime/core/config/", "eval_out/write/", "models/vunet/"]
EDITS = ["runtime/train/loop/training_loop.cpp", "runtime/tools/start/run_command.cpp", "models/mlp/mlp.cpp",
         "runtime/core/base/error.h", "runtime/train/iterator/iterator.h"]


def timed(command):
    """Seconds of the processor and seconds that passed."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime, time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return (resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before,
            time.monotonic() - start)


def configure(folder, options):
    subprocess.run(["cmake", "-S", TREE, "-B", folder, "-G", "Ninja", "-DSTEPOP_BUILD_TESTS=OFF",
                    *options], check=True, stdout=subprocess.DEVNULL)


def targets_of(folder):
    listed = subprocess.run(["ninja", "-C", folder, "-t", "targets", "all"], check=True,
                            stdout=subprocess.PIPE, text=True).stdout
    return [line.split(": ")[0] for line in listed.splitlines()]


def is_in_sample(target):
    """An object of the sample's files, compiled together or not."""
    together = [f"Unity/unity_{part.rstrip('/').replace('/', '_')}_" for part in SAMPLE]
    return (target.endswith(".o") and "checks" not in target
            and any(part in target for part in SAMPLE + together))


def build(folder, is_sample=False):
    """The sample is compiled once its precompiled headers are there; they take half a minute."""
    if not is_sample:
        return timed(["ninja", "-C", folder, "stepop"])
    all_targets = targets_of(folder)
    before = [target for target in all_targets if target.endswith(("_pch.hxx.gch", "_pch.hxx.pch"))]
    before += ["cmake_object_order_depends_target_stepop_engine", "cmake_object_order_depends_target_stepop_light"]
    timed(["ninja", "-C", folder, *before])
    return timed(["ninja", "-C", folder, *filter(is_in_sample, all_targets)])


def show(name, user, passed, ratio=""):
    print(f"{name:<64}{user:8.0f} s{passed:8.0f} s{ratio:>8}", flush=True)


def main():
    os.environ["CCACHE_DISABLE"] = "1"
    arguments = sys.argv[1:]
    is_sample = arguments[:1] == ["--sample"]
    wanted = arguments[is_sample:] or [*VARIANTS, *([] if is_sample else ["edits"])]
    unknown = [name for name in wanted if name not in VARIANTS and name != "edits"]
    if unknown:
        sys.exit(f"unknown: {', '.join(unknown)}; known are: {', '.join([*VARIANTS, 'edits'])}")
    print(f"{'':<64}{'user':>10}{'passed':>10}{'ratio':>8}")
    first = None
    for name in wanted:
        with tempfile.TemporaryDirectory(prefix="stepop-build-") as folder:
            if name in VARIANTS:
                configure(folder, VARIANTS[name])
                user, passed = build(folder, is_sample)
                first = first or user
                show(name, user, passed, f"{user / first:.2f}")
                continue
            configure(folder, [])
            build(folder)
            for path in EDITS:
                os.utime(os.path.join(TREE, path))
                show(f"after an edit of {path}", *build(folder))


if __name__ == "__main__":
    main()
