"""Folders as a training leaves and changes them, for tests of what follows a run."""

from __future__ import annotations

import json
import os
from pathlib import Path

from stepop import Run
from stepop.eval.follow import Process, _boot, _ticks
from tests import files

TIME = "2026-11-21T10-00-00"


class MadeRun:
    """A run with metrics, pictures and a state that a test changes."""

    def __init__(self, config="seed: 1\n", name=f"{TIME}_made"):
        self.path = files.scratch() / "logs" / name
        (self.path / "train" / "checkpoints").mkdir(parents=True)
        (self.path / "configs").mkdir()
        (self.path / "configs" / f"train_{TIME}.yaml").write_text(config)
        self.state("done")

    @property
    def run(self):
        return Run(self.path)

    @property
    def metrics(self):
        return self.path / "train" / "metrics.jsonl"

    def state(self, state, started=TIME, pid=None, error=""):
        """`running` is this very process, unless another is given."""
        pid = os.getpid() if pid is None else pid
        host = os.uname().nodename
        process = Process(state, host, pid, started, _boot(), _ticks(pid), error)
        text = json.dumps(process._asdict())
        (self.path / "train" / "process.json").write_text(text)

    def log(self, step, **values):
        line = {"step": step, "epoch": step / 10, "samples": step * 4, "time": step / 100}
        with open(self.metrics, "a") as file:
            file.write(json.dumps({**line, **values}, allow_nan=False) + "\n")

    def cut(self, step):
        """What a resume at that step does with later ones."""
        kept = [one for one in self.lines() if one["step"] <= step]
        part = self.path / "train" / "metrics.jsonl.tmp"
        part.write_text("".join(json.dumps(one) + "\n" for one in kept))
        part.replace(self.metrics)

    def lines(self):
        return [json.loads(text) for text in self.metrics.read_text().splitlines()]

    def file(self, name, step, content=b"?", ending=".png"):
        path = self.path / "train" / f"{name}_{step:07}{ending}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    def checkpoint(self, step):
        (self.path / "train" / "checkpoints" / f"model-{step}.safetensors").write_bytes(b"")


def numbers(run_path):
    """What metrics.jsonl says, as its readers take it: by step, the last value of a name."""
    rows = {}
    for text in (Path(run_path) / "train" / "metrics.jsonl").read_text().splitlines():
        line = json.loads(text)
        values = {k: float(v) for k, v in line.items() if k != "step"}
        rows.setdefault(line["step"], {}).update(values)
    return rows
