"""python -m stepop.eval.wandb RUN...: sends runs to Weights & Biases."""

from __future__ import annotations

import functools
import glob
import html
import os
import secrets
import shutil
import string
import sys
from pathlib import Path
from typing import Any, Dict, Optional, Sequence

from .bridge import Backend, Memory, main
from .follow import IMAGES, SOUNDS, VIDEOS, Row

# How a run that ended so is shown: 0 as finished, others as failed or crashed.
EXIT_CODES = {"done": 0, "stopped": 0, "failed": 1, "killed": 255}
# So long the rest may take to be sent once a training has ended.
FINISH_SECONDS = 600


class WandB(Backend):
    name = "wandb"
    title = "Weights & Biases"
    package = "wandb"
    options = {
        "project": "the project",
        "entity": "the user or the team",
        "group": "what runs are grouped by",
        "mode": "online or offline",
    }

    def target(self) -> Dict[str, Any]:
        settings = self.settings
        return {
            "mode": self._mode(),
            "server": os.environ.get("WANDB_BASE_URL"),
            "project": settings.get("project") or os.environ.get("WANDB_PROJECT"),
            "entity": settings.get("entity") or os.environ.get("WANDB_ENTITY"),
        }

    def _mode(self) -> str:
        # The environment is nearer than the config.
        mode = self.given.get("mode") or os.environ.get("WANDB_MODE") or self.settings.get("mode")
        return "offline" if mode == "dryrun" else str(mode or "online")

    def off(self) -> Optional[str]:
        return "WANDB_MODE is disabled" if self._mode() == "disabled" else None

    def open(self, memory: Memory, is_running: bool) -> int:
        try:
            import wandb
        except ImportError:
            raise self.not_installed() from None
        self._wandb = wandb
        mode = self._mode()
        # An agent of a sweep has given the run its id.
        id = memory.id or os.environ.get("WANDB_RUN_ID") or _new_id()
        kept = memory.kept(self.run.lines())
        memory.save(id)
        process = self.run.process()
        settings: Dict[str, Any] = {
            "console": "off",
            "disable_git": True,  # of the folder where this runs, not where the run was made
            "disable_code": True,
            "disable_job_creation": True,
            "silent": self.is_beside,  # the last line that is printed says why it ended
            "x_disable_stats": not is_running,
        }
        if is_running and process is not None:
            settings["x_stats_pid"] = process.pid
        if self.is_beside:
            settings.update(finish_timeout=FINISH_SECONDS, finish_timeout_raises=True)
        options: Dict[str, Any] = {
            "project": self.settings.get("project"),
            "entity": self.settings.get("entity"),
            "group": self.settings.get("group") or self.run.sweep,
            "name": self.run.name,
            "id": id,
            "dir": str(self.run.path),
            "mode": mode,
            "config": self.run.config,
            "allow_val_change": True,
        }
        self._id = id
        self._is_offline = mode == "offline"
        begin = functools.partial(wandb.init, settings=wandb.Settings(**settings), **options)
        if self._is_offline:
            # Each start makes one that is whole.
            self._active = begin()
            after = -1
        else:
            self._active = self._begin_online(begin, kept)
            # The server knows best: what was on its way when a bridge was killed, it may not have.
            after = self._active.step - 1
        self._has_pictures = True
        self._save_records()
        code = self.run.code()
        if code is not None:
            self._active.log_code(
                str(code),
                name=f"source-{id}",
                include_fn=lambda path, *_: not path.endswith(".so"),
            )
        where = self._active.dir if self._is_offline else self._active.url
        self.say(f"sent to {where} from step {after + 1} on")
        return after

    def _begin_online(self, begin: Any, kept: Any) -> Any:
        if kept.is_stale or kept.is_partial:
            # The steps that the run logs again, or more of, replace those that were sent.
            try:
                return begin(resume_from=f"{self._id}?_step={max(kept.step, 0)}")
            except (self._wandb.Error, ValueError) as error:
                self.say(f"{error}: it keeps what it was sent first of steps after {kept.step}")
        return begin(resume="allow")

    def send(self, rows: Sequence[Row]) -> None:
        for row in rows:
            values: Dict[str, Any] = dict(row.values)
            for key, path in row.files.items():
                media = self._media(path)
                if media is not None:
                    values[key if key not in values else key + "/file"] = media
            self._active.log(values, step=row.step)

    def _media(self, path: Path) -> Any:
        try:
            if path.suffix in IMAGES and self._has_pictures:
                return self._wandb.Image(str(path))
            if path.suffix in VIDEOS:
                return self._wandb.Video(str(path), format=path.suffix[1:])
            if path.suffix in SOUNDS:
                return self._wandb.Audio(str(path))
            if path.suffix == ".txt":
                text = path.read_text(encoding="utf-8", errors="replace")
                return self._wandb.Html(f"<pre>{html.escape(text)}</pre>", inject=False)
        except self._wandb.Error as error:  # Pillow is missing
            self.say(f"no pictures: {error}")
            self._has_pictures = False
        except (OSError, ValueError) as error:
            self.say(f"{path} is left out: {error}")
        return None

    def _save_records(self) -> None:
        here = str(self.run.path)
        self._active.save(f"{glob.escape(here)}/configs/*", base_path=here, policy="now")

    def close(self, state: Optional[str]) -> None:
        self._save_records()
        log = self.run.train / "log.txt"
        if log.is_file():
            self._active.save(str(log), base_path=str(self.run.path), policy="now")
        if state is not None:
            self._active.summary["state"] = state
        here = Path(self._active.dir).parent
        self._active.finish(exit_code=EXIT_CODES.get(state or "done", 1))
        if self._is_offline:
            for folder in here.parent.glob(f"offline-run-*-{self._id}"):
                if folder != here:  # this one has all that is in them and in the run
                    shutil.rmtree(folder, ignore_errors=True)


def _new_id() -> str:
    return "".join(secrets.choice(string.ascii_lowercase + string.digits) for _ in range(8))


if __name__ == "__main__":
    sys.exit(main(WandB))
