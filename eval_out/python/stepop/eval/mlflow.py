"""python -m stepop.eval.mlflow RUN...: sends runs to MLflow."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

from .bridge import Backend, Memory, main
from .follow import Row

STATUSES = {"done": "FINISHED", "stopped": "FINISHED", "failed": "FAILED", "killed": "KILLED"}
# What MLflow takes at once.
MOST_METRICS = 1000
MOST_PARAMS = 100
MOST_CHARACTERS = 6000
DEFAULT_EXPERIMENT = "Default"


class MLflow(Backend):
    name = "mlflow"
    title = "MLflow"
    package = "mlflow"
    options = {"tracking_uri": "the server or the store", "experiment": "the experiment"}

    def target(self) -> Dict[str, Any]:
        return {
            "tracking_uri": self.settings.get("tracking_uri")
            or os.environ.get("MLFLOW_TRACKING_URI"),
            "experiment": self._experiment(),
        }

    def _experiment(self) -> str:
        given = self.settings.get("experiment") or os.environ.get("MLFLOW_EXPERIMENT_NAME")
        return str(given or DEFAULT_EXPERIMENT)

    def open(self, memory: Memory, is_running: bool) -> int:
        try:
            import mlflow.entities
            from mlflow import MlflowClient
        except ImportError:
            raise self.not_installed() from None
        self._entities = mlflow.entities
        self._client = MlflowClient(tracking_uri=self.target()["tracking_uri"])
        before = None if memory.is_elsewhere or not self._is_there(memory.id) else memory.id
        kept = memory.kept(self.run.lines())
        # It keeps every value that it was sent: where the run has others now, it gets a new one.
        if before is None or kept.is_stale:
            self._id = self._create()
            memory.save(self._id)
            if before is not None:
                self._client.delete_run(before)
                self.say(f"{before} is deleted: the run logs its steps again")
            after = -1
        else:
            self._id = before
            memory.save(self._id)
            self._client.update_run(self._id, status="RUNNING")
            after = kept.step
        self._begin = self._start_time()
        self._send_config()
        code = self.run.code()
        if code is not None:
            self._client.log_artifacts(self._id, str(code), "code")
        self.say(f"sent as {self._id} of {self._experiment()} from step {after + 1} on")
        return after

    def _is_there(self, id: Optional[str]) -> bool:
        """Whether nobody deleted the run."""
        from mlflow.exceptions import MlflowException

        try:
            return id is not None and self._client.get_run(id).info.lifecycle_stage == "active"
        except MlflowException:
            return False

    def _create(self) -> str:
        experiment = self._client.get_experiment_by_name(self._experiment())
        id = (
            experiment.experiment_id
            if experiment is not None
            else self._client.create_experiment(self._experiment())
        )
        tags = {"stepop.run": str(self.run.path)}
        if self.run.sweep is not None:
            tags["stepop.sweep"] = self.run.sweep
        made = self._client.create_run(
            id, run_name=self.run.name, start_time=self._start_time(), tags=tags
        )
        return str(made.info.run_id)

    def _start_time(self) -> int:
        """When the run began, in milliseconds; the same each time."""
        try:
            began = time.mktime(time.strptime(self.run.name[:19], "%Y-%m-%dT%H-%M-%S"))
        except ValueError:
            began = self.run.config_file().stat().st_mtime
        return int(began * 1000)

    def _send_config(self) -> None:
        self._send_records()
        # A parameter keeps its first value; what a resume changed is a tag.
        known = self._client.get_run(self._id).data.params
        params = dict(_flat(self.run.config))
        new = [self._entities.Param(key, text) for key, text in params.items() if key not in known]
        for i in range(0, len(new), MOST_PARAMS):
            self._client.log_batch(self._id, params=new[i : i + MOST_PARAMS])
        for key, text in params.items():
            if known.get(key, text) != text:
                self._client.set_tag(self._id, f"changed/{key}", text[:5000])

    def _send_records(self) -> None:
        self._client.log_artifacts(self._id, str(self.run.path / "configs"), "configs")

    def send(self, rows: Sequence[Row]) -> None:
        metrics: List[Any] = []
        for row in rows:
            # Training time, so that a value that is sent twice is the same one.
            at = self._begin + int(row.values.get("time", 0) * 1000)
            metrics += [
                self._entities.Metric(_name(key), value, at, row.step)
                for key, value in row.values.items()
            ]
        for i in range(0, len(metrics), MOST_METRICS):
            self._client.log_batch(self._id, metrics=metrics[i : i + MOST_METRICS])
        for row in rows:
            for key, path in row.files.items():
                folder = os.path.dirname(key)
                self._client.log_artifact(self._id, str(path), folder)

    def close(self, state: Optional[str]) -> None:
        self._send_records()
        log = self.run.train / "log.txt"
        if log.is_file():
            self._client.log_artifact(self._id, str(log), "train")
        if state is None:
            return
        self._client.set_tag(self._id, "stepop.state", state)
        self._client.set_terminated(self._id, STATUSES.get(state, "FAILED"))


def _name(key: str) -> str:
    """With the characters that MLflow takes."""
    return re.sub(r"[^\w\-. :/]", "_", key)


def _flat(config: Dict[str, Any], above: str = "") -> Iterator[Tuple[str, str]]:
    for key, value in config.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{above}{key}/")
        else:
            text = value if isinstance(value, str) else json.dumps(value, default=str)
            yield _name(f"{above}{key}"), text[:MOST_CHARACTERS]


if __name__ == "__main__":
    sys.exit(main(MLflow))
