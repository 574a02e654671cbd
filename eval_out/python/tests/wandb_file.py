"""Reads what wandb stored offline: a .wandb file is a log as LevelDB writes it, behind 7 bytes, of
the records of wandb's own wandb_internal.proto."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Optional

from wandb.proto import wandb_internal_pb2

BLOCK = 32768
HEAD = struct.Struct("<IHB")  # a checksum, the length, whether it is a whole record or a part
WHOLE, LAST = 1, 4


class Stored(NamedTuple):
    id: str
    project: str
    entity: str
    group: str
    name: str
    config: Dict[str, Any]
    history: Dict[int, Dict[str, float]]  # numbers by step, as one call sent them
    media: Dict[int, Dict[str, Dict[str, Any]]]
    summary: Dict[str, Any]
    files: List[str]
    exit_code: Optional[int]


def records(path: Path) -> Iterator[Any]:
    data = path.read_bytes()
    at, record = 7, b""
    while at < len(data):
        left = BLOCK - at % BLOCK
        if left < HEAD.size:
            at += left
            continue
        _, length, kind = HEAD.unpack_from(data, at)
        at += HEAD.size
        record += data[at : at + length]
        at += length
        if kind in (WHOLE, LAST):
            parsed = wandb_internal_pb2.Record()
            parsed.ParseFromString(record)
            record = b""
            yield parsed


def _items(items: Any) -> Dict[str, Any]:
    """Values, or maps of them, by name."""
    found: Dict[str, Any] = {}
    for item in items:
        *above, last = list(item.nested_key) or [item.key]
        place = found
        for key in above:
            place = place.setdefault(key, {})
        place[last] = json.loads(item.value_json)
    return found


def read(path: Path) -> Stored:
    stored = Stored("", "", "", "", "", {}, {}, {}, {}, [], None)
    for record in records(path):
        kind = record.WhichOneof("record_type")
        if kind == "run":
            run = record.run
            stored = stored._replace(id=run.run_id, project=run.project, entity=run.entity)
            stored = stored._replace(group=run.run_group, name=run.display_name)
            stored.config.update(_items(run.config.update))
        elif kind == "config":
            stored.config.update(_items(record.config.update))
        elif kind == "history":
            items = _items(record.history.item)
            step = items.pop("_step")
            if step in stored.history:
                raise ValueError(f"step {step} was sent twice")
            own = {key: value for key, value in items.items() if not key.startswith("_")}
            stored.history[step] = {k: v for k, v in own.items() if not isinstance(v, dict)}
            stored.media[step] = {k: v for k, v in own.items() if isinstance(v, dict)}
        elif kind == "summary":
            stored.summary.update(_items(record.summary.update))
        elif kind == "files":
            stored.files.extend(one.path for one in record.files.files)
        elif kind == "exit":
            stored = stored._replace(exit_code=record.exit.exit_code)
    return stored
