"""Builds the wheel: what pip calls (PEP 517), and `python3 cmake/wheel/backend.py dist`.

CMake does the work, in build/, where what was compiled before is not compiled again. This file
lays out what `cmake --install` gives, adds the old name of a package, and zips it.
"""

import base64
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile

_source = pathlib.Path(__file__).resolve().parents[2]
_scripts = "[console_scripts]\nstepop = stepop:main\n"


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Builds the wheel, and returns its file name in `wheel_directory`."""
    build = pathlib.Path(os.environ.get("STEPOP_BUILD", _source / "build"))
    if not (build / "CMakeCache.txt").exists():
        _run("cmake", "--preset", "release", "-B", build)
    _run("cmake", "--build", build, "--target", "stepop_wheel", "stepop_probe_hdf5")
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        for component in "stepop", "wheel":
            _run("cmake", "--install", build, "--component", component, "--prefix", folder / "stepop")
        shutil.copy(_source / "eval_out/python/stepop_eval.py", folder)
        metadata = (build / "install/wheel/METADATA").read_text()
        if "torch==\n" in metadata:
            raise SystemExit("wheel: LibTorch says no version: build with the package torch")
        metadata += _requirements()
        return _pack(folder, metadata, pathlib.Path(wheel_directory))


def build_sdist(sdist_directory, config_settings=None):
    raise NotImplementedError("stepop has no source distribution: clone the repository")


def _run(*words):
    subprocess.run([str(word) for word in words], cwd=_source, check=True, stdout=sys.stderr)


def _requirements():
    """Those of the Python package, as its pyproject.toml has them."""
    text = (_source / "eval_out/python/pyproject.toml").read_text()
    listed = re.search(r"^dependencies = \[(.*?)\]", text, re.M | re.S).group(1)
    return "".join(f"Requires-Dist: {name}\n" for name in re.findall(r'"([^"]+)"', listed))


def _platform():
    """The program runs with this machine's C library and newer ones."""
    glibc = os.confstr("CS_GNU_LIBC_VERSION").split()[1].replace(".", "_")
    machine = sysconfig.get_platform().rsplit("-", 1)[-1]
    return f"manylinux_{glibc}_{machine}"


def _place_licences(folder, licences):
    """Fills the folder `licences`, and returns the lines of METADATA that name its files."""
    # As installed: with the texts of the libraries, and of the headers that are compiled in.
    share = folder / "stepop/share/stepop"
    shutil.copytree(share / "LICENSES", licences / "LICENSES")
    for name in "LICENSE", "cmake/licences/THIRD_PARTY.md":
        shutil.copy(share / name, licences)
    files = sorted(path for path in licences.rglob("*") if path.is_file())
    return "".join(f"License-File: {path.relative_to(licences)}\n" for path in files)


def _pack(folder, metadata, wheel_directory):
    name = "stepop-" + re.search(r"^Version: (.*)$", metadata, re.M).group(1)
    tag = f"py3-none-{_platform()}"
    info = folder / f"{name}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(metadata + _place_licences(folder, info / "licenses"))
    (info / "WHEEL").write_text(
        f"Wheel-Version: 1.0\nGenerator: stepop\nRoot-Is-Purelib: false\nTag: {tag}\n"
    )
    (info / "entry_points.txt").write_text(_scripts)
    record = info / "RECORD"
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    lines = []
    for path in files:
        content = path.read_bytes()
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append(f"{path.relative_to(folder)},sha256={digest},{len(content)}\n")
    record.write_text("".join(lines) + f"{record.relative_to(folder)},,\n")
    wheel_directory.mkdir(parents=True, exist_ok=True)
    wheel = f"{name}-{tag}.whl"
    part = wheel_directory / (wheel + ".tmp")
    with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in [*files, record]:
            archive.write(path, path.relative_to(folder))  # keeps what may be executed
    part.replace(wheel_directory / wheel)
    return wheel


if __name__ == "__main__":
    target = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "dist")
    print(target / build_wheel(target.absolute()))
