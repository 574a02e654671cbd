"""The files of a run: its numbers and pictures as they come, checkpoints, weights, starts."""

from __future__ import annotations

import base64
import html
import json
import os
import re
import struct
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional

import numpy as np
import numpy.typing as npt

from .errors import StepopError
from .eval.errors import EvalError, unknown_key
from .eval.follow import IMAGES, Follower

Weights = Dict[str, npt.NDArray[Any]]


class Image(NamedTuple):
    """A picture of a run; a notebook shows it. `evaluation` is the folder below `eval` of the
    evaluation that made it, `2026-11-21T10-00-00_digits`; empty for one that a training logged."""

    key: str
    step: int
    path: Path
    evaluation: str = ""

    def _repr_html_(self) -> str:
        title = f"{html.escape(self.key)}, step {self.step:,}"
        title += f", {html.escape(self.evaluation)}" if self.evaluation else ""
        kind = "png" if self.path.suffix == ".png" else "jpeg"
        try:
            content = self.path.read_bytes()
        except OSError as error:
            return f"<div>{title}: {html.escape(str(error))}</div>"
        # A browser would blur a small picture that it enlarges, and a scale of 2.5 distorts it.
        width = int.from_bytes(content[16:20], "big") if content[:4] == b"\x89PNG" else 0
        scale = -(-160 // width) if 0 < width < 160 else 1
        size = f"width:{scale * width}px" if scale > 1 else "max-width:320px"
        data = base64.b64encode(content).decode()
        return (
            f'<figure style="display:inline-block;margin:4px 12px 4px 0;vertical-align:top">'
            f'<img src="data:image/{kind};base64,{data}" alt="{title}" '
            f'style="{size};image-rendering:pixelated">'
            f'<figcaption style="font-size:85%;opacity:.7">{title}</figcaption></figure>'
        )


def shown_path(path: Path) -> str:
    """Relative where it is below the current folder."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative


class Images(Mapping[str, List[Image]]):
    """The pictures of a run by their keys, such as `train/log_op/input`: of each a list over the
    steps. The keys of evaluations begin with `eval/`; several evaluations of one step are in the
    order of their starts. A notebook shows the last one of each."""

    def __init__(self, where: Path, images: Dict[str, List[Image]]) -> None:
        self._where, self._images = where, images

    def __getitem__(self, key: str) -> List[Image]:
        if key not in self._images:
            raise unknown_key(f"{self._where}: images", key, self._images)
        return self._images[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._images)

    def __len__(self) -> int:
        return len(self._images)

    def __repr__(self) -> str:
        steps = {key: len({one.step for one in images}) for key, images in self.items()}
        lines = [f"  {key}: {count} steps" for key, count in steps.items()]
        return "\n".join([f"{shown_path(self._where)}: images", *lines])

    def last(self, most: Optional[int] = None) -> List[Image]:
        """The last picture of each key, the newest first."""
        newest = [images[-1] for images in self._images.values()]
        return sorted(newest, key=lambda one: (-one.step, one.key))[:most]

    def _repr_html_(self) -> str:
        return "".join(image._repr_html_() for image in self.last())


class Logs:
    """What a run has logged: read once, then only what came since."""

    def __init__(self, run: Path) -> None:
        self._run = run
        self._begin()

    def _begin(self) -> None:
        self._follower = Follower(self._run / "train")
        self.rows: Dict[int, Dict[str, float]] = {}
        self._images: Dict[str, Dict[int, Image]] = {}

    def __del__(self) -> None:
        self._follower.close()

    def read(self) -> "Logs":
        if self._follower.is_replaced():  # a resume from an earlier step dropped the later ones
            self._follower.close()
            self._begin()
        while True:
            self._follower.read()
            if self._follower.has_read_all:
                break
        for row in self._follower.take(is_over=True):
            if row.values:
                self.rows.setdefault(row.step, {}).update(row.values)
            for key, path in row.files.items():
                self._add(key, path)
        return self

    def _add(self, key: str, path: Path) -> None:
        if path.suffix in IMAGES:
            step = int(path.stem.rpartition("_")[2])
            self._images.setdefault(key, {})[step] = Image(key, step, path)

    def images(self) -> Images:
        by_key: Dict[str, List[Image]] = {}
        logged = (image for by_step in self._images.values() for image in by_step.values())
        for image in sorted([*logged, *_evaluation_images(self._run / "eval")]):
            by_key.setdefault(image.key, []).append(image)
        for images in by_key.values():
            images.sort(key=lambda one: (one.step, one.evaluation))
        return Images(self._run, by_key)


def _evaluation_images(folder: Path) -> Iterator[Image]:
    """The pictures eval/<start>/<step>/<callback>/<name>.png, of which some end in `_<step>`."""
    for path in folder.glob("*/*/**/*"):
        start, step, *parts = path.relative_to(folder).parts
        is_step = step.isascii() and step.isdigit()
        if not is_step or path.suffix not in IMAGES or path.is_symlink() or not path.is_file():
            continue
        name = re.sub(f"_0*{int(step)}$", "", path.stem)
        yield Image("/".join(["eval", *parts[:-1], name]), int(step), path, start)


class Checkpoint(NamedTuple):
    """A checkpoint of a run; `metric` is the number by which the best one is chosen, at its step."""

    step: int
    epoch: float
    metric: Optional[float]
    is_latest: bool
    is_best: bool
    path: Path


def read_checkpoints(folder: Path, values: Mapping[int, float]) -> List[Checkpoint]:
    """The checkpoints in a folder, by step. `values`: the metric of each step."""
    named = (
        (re.fullmatch(r"model-([0-9]+)\.safetensors", p.name), p) for p in folder.glob("model-*")
    )
    latest, best = _linked(folder / "latest.safetensors"), _linked(folder / "best.safetensors")
    found = []
    for step, path in sorted((int(match[1]), path) for match, path in named if match):
        epoch = _epoch(path)
        value = values.get(step)
        found.append(Checkpoint(step, epoch, value, path.name == latest, path.name == best, path))
    return found


def _linked(link: Path) -> str:
    try:
        return link.readlink().name
    except OSError:
        return ""


def _epoch(path: Path) -> float:
    """With its fraction; NaN where the file does not say it: a training may remove it now."""
    try:
        with open(path, "rb") as file:
            progress = json.loads(_read_header(file, path)["__metadata__"]["progress"])
        return float(progress["epoch"] + progress["batch"] / max(progress["batches_per_epoch"], 1))
    except (OSError, StopIteration, KeyError, TypeError, ValueError, StepopError):
        return float("nan")


_TYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1", "BOOL": "?", "C64": "<c8",
    "BF16": "<u2",
}  # fmt: skip


def _read_header(file: Any, path: Path) -> Dict[str, Any]:
    size = path.stat().st_size
    start = file.read(8)
    length = struct.unpack("<Q", start)[0] if len(start) == 8 else size
    if length > size - 8:
        raise StepopError(f"{path}: damaged: it ends within its header")
    header = json.loads(file.read(length))
    if not isinstance(header, dict):
        raise ValueError("its header is no map")
    return header


def read_weights(path: Path, group: Optional[str]) -> Weights:
    """The tensors of a checkpoint, a tied one under each of its names: those of the networks and
    of their averages, or those of one group, `model`, without the group in their names. bfloat16
    becomes float32, which holds the same numbers. Throws StepopError."""
    try:
        with open(path, "rb") as file:
            header = _read_header(file, path)
            begin = file.tell()
            metadata = header.pop("__metadata__", {})
            aliases = json.loads(metadata.get("aliases", "{}"))
            sources = {name: name for name in header}
            sources.update({name: first for name, first in aliases.items() if first in header})
            networks = json.loads(metadata["networks"]) if "networks" in metadata else None
            chosen = _chosen(sources, group, networks, path)
            return {
                name: _read_tensor(file, begin, sources[full], header[sources[full]])
                for name, full in chosen.items()
            }
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, EvalError):  # an unknown group
            raise
        raise StepopError(f"{path}: cannot read its weights: {error}") from None


def _chosen(
    names: Mapping[str, str], group: Optional[str], networks: Optional[List[str]], path: Path
) -> Dict[str, str]:
    """The names that are wanted, each with its name in the file."""
    groups = {name.partition(".")[0] for name in names}
    if group is None:
        if networks is None:  # a checkpoint of 0.1.0
            networks = [one for one in groups if _may_be_network(one, names)]
        return {name: name for name in sorted(names) if name.partition(".")[0] in networks}
    if group not in groups:
        raise unknown_key(str(path), group, groups)
    return {name[len(group) + 1 :]: name for name in sorted(names) if name.startswith(f"{group}.")}


def _may_be_network(group: str, names: Mapping[str, str]) -> bool:
    """Whether it is no optimizer, hook, random state, or number that the loop or an iterator
    tracks."""
    if group in ("random", "stop_when", "train_means") or group.startswith(("rank_", "hooks/")):
        return False
    if f"{group}.value" in names or f"{group}.measured" in names:
        return False
    return not (f"{group}.count" in names and f"{group}.skipped" in names)


def _read_tensor(file: Any, begin: int, name: str, entry: Mapping[str, Any]) -> npt.NDArray[Any]:
    first, end = entry["data_offsets"]
    kind = _TYPES.get(entry["dtype"])
    if kind is None:
        raise ValueError(f"{name} is of type {entry['dtype']}, which NumPy does not have")
    file.seek(begin + first)
    data = file.read(end - first)
    if len(data) != end - first:
        raise ValueError(f"it is cut short within {name}")
    values = np.frombuffer(bytearray(data), kind).reshape(entry["shape"])
    if entry["dtype"] == "BF16":
        return (values.astype(np.uint32) << 16).view(np.float32)
    return values


class Start(NamedTuple):
    """A start of a run: what configs/train_<time>.json says, whole in `record`."""

    time: str
    kind: str
    step: int
    host: str
    command: str
    commit: str
    is_changed: bool
    config: Path
    record: Dict[str, Any]


def read_starts(configs: Path) -> List[Start]:
    """The starts of the trainings of a run, the first one first."""
    return [_read_start(path) for path in sorted(configs.glob("train_*.yaml"))]


def _read_start(config: Path) -> Start:
    try:
        record = json.loads(config.with_suffix(".json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        record = {}
    if not isinstance(record, dict):
        record = {}
    git: Any = next(iter(record.get("git") or []), {})
    return Start(
        time=config.stem.partition("_")[2],
        kind=str(record.get("kind", "")),
        step=int(record.get("step", 0)),
        host=str(record.get("host", "")),
        command=str(record.get("command", "")),
        commit=str(git.get("commit") or ""),
        is_changed=bool(git.get("patch") or git.get("untracked")),
        config=config,
        record=record,
    )
