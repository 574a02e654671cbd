"""A search that learns: Optuna suggests values, stepop trains with them, bad trials end early.

    pip install optuna
    python configs/optuna_search.py --trials 20

Each trial is a run of stepop in logs/optuna/<study>/. Its numbers are read from train/metrics.jsonl
as they are written, and a trial that Optuna prunes is stopped by SIGTERM: the run saves, and
`stepop -p RUN -t` would resume it. Started again, the search goes on where it was, and resumes the
trial that was running. What is searched is in `suggest`: make it your own.
"""

import argparse
import glob
import json
import os
import signal
import subprocess
import time

import optuna
from optuna.trial import TrialState


def suggest(trial):
    """The values of a trial, by the keys of the config."""
    return {
        "optimizer/lr": trial.suggest_float("optimizer/lr", 1e-4, 3e-2, log=True),
        "model/hidden": [trial.suggest_int("hidden", 16, 128, log=True), 84],
        "batch_size": trial.suggest_categorical("batch_size", [32, 64]),
    }


class MetricsFile:
    """The lines of a metrics.jsonl that have one number, as they come."""

    def __init__(self, path, metric):
        self.path, self.metric, self.position = path, metric, 0

    def new_values(self):
        """(step, value) of each whole line that was written since the last call."""
        try:
            with open(self.path, "rb") as file:
                file.seek(self.position)
                text = file.read()
        except FileNotFoundError:
            return []
        text = text[: text.rfind(b"\n") + 1]  # half a line is being written
        self.position += len(text)
        values = []
        for line in text.splitlines():
            try:
                line = json.loads(line)
            except ValueError:  # what a killed process left
                continue
            if self.metric in line:
                values.append((line["step"], float(line[self.metric])))  # "NaN" is a text
        return values


class Search:
    def __init__(self, study, folder, base, metric, stepop="stepop", suggest=suggest, poll=0.5):
        self.study, self.folder, self.base, self.metric = study, folder, base, metric
        self.stepop, self.suggest, self.poll = stepop, suggest, poll

    def run_of(self, name):
        """The folder of a trial's run; None while there is none."""
        return max(glob.glob(os.path.join(glob.escape(self.folder), "????-*_" + name)), default=None)

    def start(self, name, values):
        run = self.run_of(name)
        if run:
            words = ["-p", run, "-t"]
        else:
            words = ["-n", name, "-b", *self.base, "-t", "--logs", self.folder]
            # JSON is YAML, and quotes a text.
            words += [f"--{key}={json.dumps(value)}" for key, value in values.items()]
        os.makedirs(self.folder, exist_ok=True)
        with open(os.path.join(self.folder, name + ".txt"), "ab") as output:
            # In a session of its own: a Ctrl-C is this program's to handle.
            return subprocess.Popen(
                [self.stepop, *words], stdout=output, stderr=output, start_new_session=True
            )

    def objective(self, trial):
        # A trial that takes the place of one that was killed goes on with its run.
        name = trial.user_attrs.get("run") or f"trial_{trial.number:04}"
        trial.set_user_attr("run", name)
        process = self.start(name, self.suggest(trial))
        values = {}
        try:
            metrics = None
            while True:
                has_ended = process.poll() is not None  # before the last look at its numbers
                run = self.run_of(name)
                if run and metrics is None:
                    metrics = MetricsFile(os.path.join(run, "train", "metrics.jsonl"), self.metric)
                for step, value in metrics.new_values() if metrics else []:
                    values[step] = value
                    trial.report(value, step)
                if has_ended:
                    break
                if trial.should_prune():
                    raise optuna.TrialPruned()
                time.sleep(self.poll)
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)  # it finishes its step and saves
                process.wait()
        if process.returncode not in (0, 3):  # 3: a callback of an evaluation failed
            raise RuntimeError(f"{name} ended with status {process.returncode}: see {self.folder}/{name}.txt")
        if not values:
            raise RuntimeError(f"{name} has not logged {self.metric}")
        best = max if self.study.direction == optuna.study.StudyDirection.MAXIMIZE else min
        return best(values.values())

    def resume_killed(self):
        """Trials that an earlier start left running get a successor with their values and run."""
        for trial in self.study.get_trials(states=(TrialState.RUNNING,)):
            self.study.tell(trial.number, state=TrialState.FAIL)
            if trial.params and "run" in trial.user_attrs:
                attributes = {"run": trial.user_attrs["run"]}
                self.study.enqueue_trial(trial.params, user_attrs=attributes)

    def run(self, trials):
        """Until the study has so many trials that ended or were pruned."""
        self.resume_killed()
        done = self.study.get_trials(states=(TrialState.COMPLETE, TrialState.PRUNED))
        if trials > len(done):
            self.study.optimize(self.objective, trials - len(done), catch=(RuntimeError,))


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--base", nargs="+", default=[os.path.join(here, "digits.yaml")])
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--study", default="digits", help="a name; its runs are in logs/optuna/NAME")
    parser.add_argument("--metric", default="validation/eval_op/accuracy/accuracy")
    parser.add_argument("--direction", choices=["maximize", "minimize"], default="maximize")
    parser.add_argument("--stepop", default="stepop", help="the program, such as build/stepop")
    arguments = parser.parse_args()

    folder = os.path.join("logs", "optuna", arguments.study)
    os.makedirs(folder, exist_ok=True)
    journal = optuna.storages.journal.JournalFileBackend(os.path.join(folder, "study.log"))
    study = optuna.create_study(
        study_name=arguments.study,
        storage=optuna.storages.JournalStorage(journal),
        load_if_exists=True,
        direction=arguments.direction,
        pruner=optuna.pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=100),
    )
    search = Search(study, folder, arguments.base, arguments.metric, arguments.stepop)
    search.run(arguments.trials)
    print(f"best {study.best_value:.4g}: {study.best_trial.user_attrs['run']} {study.best_params}")


if __name__ == "__main__":
    main()
