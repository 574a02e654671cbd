import contextlib
import io
import multiprocessing
import shutil
import sys
import time
import types
import unittest
import wave
from unittest import mock

from PIL import Image

from stepop.eval import bridge
from stepop.eval.bridge import Backend, Kept, Memory, follow, main
from stepop.eval.follow import Line
from stepop.eval.mlflow import MLflow
from stepop.eval.wandb import WandB
from tests import files, wandb_file
from tests.runs import MadeRun, numbers


def line(step, check=0):
    return Line(step, {}, check)


class Service(Backend):
    """Keeps what it is sent, and knows no way back."""

    name, title, options = "service", "A service", {"place": "where"}
    calls: list = []

    def target(self):
        return {"place": self.settings.get("place")}

    def open(self, memory, is_running):
        kept = memory.kept(self.run.lines())
        memory.save(memory.id or "id")
        self.calls.append(("open", kept.step, is_running))
        return kept.step

    def send(self, rows):
        self.calls.append(("send", [row.step for row in rows]))

    def close(self, state):
        self.calls.append(("close", state))


def sent(made, given=None, is_beside=False):
    """The calls that following a run made."""
    Service.calls = []
    with contextlib.redirect_stdout(io.StringIO()):
        follow(Service, str(made.path), given or {}, is_beside)
    return Service.calls


class MemoryTest(unittest.TestCase):
    def check(self, before, now, expected):
        folder = files.scratch()
        memory = Memory(folder, {"to": 1})
        memory.save("id")
        memory.keep(iter(before), 1000)
        self.assertEqual(Memory(folder, {"to": 1}).kept(iter(now)), expected)
        # Another place has nothing.
        elsewhere = Memory(folder, {"to": 2}).kept(iter(now))
        self.assertEqual(elsewhere, Kept(-1, False, False, not now))

    def test_what_is_the_same_is_kept(self):
        one, two, three = line(1, 7), line(2, 8), line(3, 9)
        self.check([], [], Kept(-1, False, False, True))
        self.check([], [one], Kept(-1, False, False, False))
        self.check([one, two], [one, two], Kept(2, False, False, True))
        self.check([one, two], [one, two, three], Kept(2, False, False, False))

    def test_what_a_resume_took_back_is_not(self):
        one, two, three = line(1, 7), line(2, 8), line(3, 9)
        self.check([one, two, three], [one], Kept(1, True, False, False))
        self.check([one, two, three], [one, line(2, 5), three], Kept(1, True, False, False))
        self.check([one, two, three], [line(1, 5)], Kept(-1, True, False, False))

    def test_a_step_that_gets_a_line_more_is_sent_again(self):
        one, two, more = line(1, 7), line(2, 8), line(2, 5)
        self.check([one, two], [one, two, more], Kept(1, False, True, False))
        self.check([one, two, more], [one, two], Kept(1, True, False, False))


class LoopTest(unittest.TestCase):
    def test_a_run_that_has_ended_is_sent_once(self):
        made = MadeRun()
        made.log(1, a=1)
        made.log(2, a=2)
        self.assertEqual(sent(made), [("open", -1, False), ("send", [1, 2]), ("close", "done")])
        self.assertEqual(sent(made), [])
        self.assertEqual(sent(made, {"place": "elsewhere"})[1], ("send", [1, 2]))

    def test_what_came_since_is_sent_by_the_next(self):
        made = MadeRun()
        made.log(1, a=1)
        made.state("failed")
        self.assertEqual(sent(made)[-1], ("close", "failed"))
        made.log(2, a=2)
        made.state("done", started="2026-11-21T11-00-00")
        self.assertEqual(sent(made), [("open", 1, False), ("send", [2]), ("close", "done")])

    def changes(self, made, *changes):
        """What it is sent of a run that is training, when it changes so between two looks."""
        made.state("running")
        left = list(changes)
        with mock.patch.object(bridge.time, "sleep", lambda _: left.pop(0)()):
            calls = sent(made, is_beside=True)
        self.assertEqual(left, [])
        return calls

    def test_a_run_is_followed_until_it_ends(self):
        made = MadeRun()
        made.log(1, a=1)

        def more():
            made.checkpoint(1)
            made.log(2, a=2)

        self.assertEqual(
            self.changes(made, more, lambda: made.state("stopped")),
            [("open", -1, True), ("send", [1]), ("send", [2]), ("close", "stopped")],
        )

    def test_when_its_process_is_gone_it_was_killed(self):
        made = MadeRun()
        made.log(1, a=1)
        calls = self.changes(made, lambda: made.state("running", pid=2**22 + 1))
        self.assertEqual(calls[1:], [("send", [1]), ("close", None)])  # another process: a start
        process = multiprocessing.Process(target=time.sleep, args=(60,))
        process.start()
        made.state("running", started="2026-11-21T11-00-00", pid=process.pid)

        def kill(_):
            process.kill()
            process.join()

        with mock.patch.object(bridge.time, "sleep", kill):
            self.assertEqual(sent(made)[-1], ("close", "killed"))

    def test_the_next_start_is_left_to_its_own_bridge(self):
        made = MadeRun()
        for step in (1, 2, 3):
            made.log(step, a=step)

        def resume():
            made.state("running", started="2026-11-21T11-00-00")
            made.cut(1)
            made.log(2, a=5)

        self.assertEqual(
            self.changes(made, resume), [("open", -1, True), ("send", [1, 2, 3]), ("close", None)]
        )
        made.state("done", started="2026-11-21T11-00-00")
        self.assertEqual(sent(made), [("open", 1, False), ("send", [2]), ("close", "done")])

    def test_two_do_not_send_a_run_at_once(self):
        made = MadeRun()
        with bridge._lock(made.path / "lock", waits=False):
            with self.assertRaisesRegex(bridge.EvalError, "process [0-9]+ sends this run already"):
                with bridge._lock(made.path / "lock", waits=False):
                    self.fail("both have it")


class HandlersTest(unittest.TestCase):
    def sent(self, config):
        """The names of the numbers and of the files that a service is sent."""
        made = MadeRun(config)
        made.log(1, loss=0.5)
        for name, ending in (("train/log_op/a", ".png"), ("train/log_op/b", ".wav"),
                             ("train/log_op/c", ".txt"), ("train/log_op/d", ".gif")):  # fmt: skip
            made.file(name, 1, ending=ending)
        rows = []
        with mock.patch.object(Service, "send", lambda self, new: rows.extend(new)):
            sent(made)
        (row,) = rows
        names = "".join(sorted(key[-1] for key in row.files))
        return "loss" in row.values, names, row.step

    def test_a_service_is_sent_the_kinds_of_logs_that_the_config_names(self):
        def with_handlers(handlers):
            return self.sent(f"integrations: {{service: {{handlers: {handlers}}}}}\n")

        self.assertEqual(self.sent("seed: 1\n"), (True, "abcd", 1))
        self.assertEqual(with_handlers("null"), (True, "abcd", 1))
        self.assertEqual(with_handlers("[scalars]"), (True, "", 1))
        self.assertEqual(with_handlers("[images, texts]"), (False, "acd", 1))
        self.assertEqual(with_handlers("[scalars, audio]"), (True, "b", 1))


class CommandTest(unittest.TestCase):
    def run_main(self, *arguments):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = main(Service, [str(one) for one in arguments])
        return status, out.getvalue(), err.getvalue()

    def test_several_runs_are_sent_one_after_the_other_and_a_bad_one_does_not_stop_them(self):
        first, second = MadeRun(), MadeRun()
        Service.calls = []
        status, _, err = self.run_main(first.path, "/nowhere", second.path, "--place", "x")
        self.assertEqual((status, err), (1, "/nowhere: /nowhere: no such folder\n"))
        self.assertEqual([call[0] for call in Service.calls], ["open", "close", "open", "close"])

    def test_a_missing_package_is_one_line_that_says_what_helps(self):
        made = MadeRun()
        for backend, name, text in (
            (WandB, "wandb", f"not installed for {sys.executable}: pip install wandb"),
            (MLflow, "mlflow.entities", f"not installed for {sys.executable}: pip install mlflow"),
        ):
            err = io.StringIO()
            with mock.patch.dict(sys.modules, {name: None}), contextlib.redirect_stderr(err):
                self.assertEqual(main(backend, [str(made.path)]), 1)
            self.assertIn(text, err.getvalue())

    def test_where_nothing_is_installed_the_package_of_the_service_is_named(self):
        made, err = MadeRun(), io.StringIO()
        missing = {"yaml": None, "wandb": None}
        with mock.patch.dict(sys.modules, missing), contextlib.redirect_stderr(err):
            self.assertEqual(main(WandB, [str(made.path)]), 1)
        self.assertEqual(
            err.getvalue(),
            f"{made.path}: Weights & Biases is not installed for {sys.executable}: "
            "pip install wandb\n",
        )


def copy_of_run():
    path = files.scratch() / files.run().name
    shutil.copytree(files.run(), path)
    return path


class WandBTest(unittest.TestCase):
    def send(self, path, *more):
        files.call(sys.executable, "-m", "stepop.eval.wandb", path, *more, cwd=files.PACKAGE)
        (made,) = (path / "wandb").glob("offline-run-*/*.wandb")
        return made.parent, wandb_file.read(made)

    def test_a_whole_run_is_stored_as_its_files_have_it(self):
        path = copy_of_run()
        # Bytes, since what it is given may have no number for NaN.
        with open(path / "train" / "metrics.jsonl", "a") as file:
            file.write('{"step":47,"time":1,"n":"NaN","i":"Infinity","j":"-Infinity"}\n')
        (path / "train" / "train" / "log_op" / "note_0000046.txt").write_text("a < b")
        clip = path / "train" / "train" / "log_op" / "clip_0000046.gif"
        frames = [Image.new("L", (8, 8), shade) for shade in (0, 99)]
        frames[0].save(clip, save_all=True, append_images=frames[1:])
        voice = path / "train" / "train" / "log_op" / "voice" / "0_0000046.wav"
        voice.parent.mkdir()
        with wave.open(str(voice), "wb") as sound:
            sound.setnchannels(1), sound.setsampwidth(2), sound.setframerate(8000)
            sound.writeframes(bytes(range(64)))
        (path / "code" / "2026-11-21T10-00-00").mkdir(parents=True)
        (path / "code" / "2026-11-21T10-00-00" / "mine.cpp").write_text("// mine")
        folder, stored = self.send(
            path, "--mode", "offline", "--project", "p", "--entity", "e", "--group", "g"
        )
        self.assertEqual((stored.project, stored.entity, stored.group), ("p", "e", "g"))
        self.assertEqual(stored.name, path.name)
        self.assertEqual(stored.config["optimizer"]["lr"]["from"], 0.006)
        self.assertEqual(stored.config["extra"]["text"], "{a}")
        found = {step: {k: repr(float(v)) for k, v in row.items()}
                 for step, row in stored.history.items()}  # fmt: skip
        expected = {step: {k: repr(v) for k, v in row.items()}
                    for step, row in numbers(path).items()}  # fmt: skip
        self.assertEqual(found, expected)
        self.assertEqual((stored.summary["state"], stored.exit_code), ("done", 0))
        # Each picture is there with its bytes, at its step.
        count = 0
        for image in (path / "train").glob("*/log_op/*.png"):
            name, step = image.stem.rsplit("_", 1)
            key = str((image.parent / name).relative_to(path / "train"))
            media = stored.media[int(step)][key]
            self.assertEqual((folder / "files" / media["path"]).read_bytes(), image.read_bytes())
            count += 1
        self.assertGreater(count, 3)
        video = stored.media[46]["train/log_op/clip"]
        self.assertEqual((folder / "files" / video["path"]).read_bytes(), clip.read_bytes())
        sound = stored.media[46]["train/log_op/voice/0"]
        self.assertEqual(sound["_type"], "audio-file")
        self.assertEqual((folder / "files" / sound["path"]).read_bytes(), voice.read_bytes())
        note = stored.media[46]["train/log_op/note"]
        self.assertIn("a &lt; b", (folder / "files" / note["path"]).read_text())
        for name in (
            "train/log.txt",
            *(f"configs/{one.name}" for one in (path / "configs").iterdir()),
        ):
            self.assertIn(name, stored.files)

    def online(self, made, starting_step, fails_to_rewind=False):
        """How W&B is begun online, where it has steps before `starting_step`."""
        begun, logged = [], []

        class FakeError(Exception):
            pass

        def init(**arguments):
            begun.append(
                {k: arguments[k] for k in ("id", "resume", "resume_from") if k in arguments}
            )
            if fails_to_rewind and "resume_from" in arguments:
                raise FakeError("rewinding is not there")
            return types.SimpleNamespace(
                step=starting_step, url="https://x", dir=str(made.path),
                save=lambda *_, **__: None, summary={}, finish=lambda **_: None,
                log=lambda values, step: logged.append(step),
            )  # fmt: skip

        fake = types.SimpleNamespace(init=init, Error=FakeError, Settings=dict)
        with mock.patch.dict(sys.modules, {"wandb": fake}):
            with mock.patch.dict("os.environ", {"WANDB_MODE": "online"}):
                with contextlib.redirect_stdout(io.StringIO()):
                    follow(WandB, str(made.path), {}, False)
        return begun, logged

    def test_the_run_of_an_agent_has_the_agents_id_also_when_it_is_resumed_without_the_agent(self):
        made = MadeRun()
        made.log(1, a=1)
        with mock.patch.dict("os.environ", {"WANDB_RUN_ID": "of_agent"}):
            ((first,), _) = self.online(made, 0)
        made.log(2, a=2)
        ((again,), logged) = self.online(made, 2)
        self.assertEqual((first["id"], again["id"], logged), ("of_agent", "of_agent", [2]))

    def test_online_a_resume_goes_on_and_what_is_logged_again_is_taken_back(self):
        made = MadeRun()
        for step in (1, 2, 3):
            made.log(step, a=step)
        ((first,), logged) = self.online(made, 0)
        self.assertEqual((first["resume"], logged), ("allow", [1, 2, 3]))
        made.log(4, a=4)
        ((again,), logged) = self.online(made, 4)
        self.assertEqual((again, logged), (first, [4]))
        # What a killed bridge had not sent to its end, the server does not have.
        made.log(5, a=5)
        self.assertEqual(self.online(made, 3)[1], [3, 4, 5])
        made.cut(2)
        made.log(3, a=9)
        ((rewound,), logged) = self.online(made, 3)
        self.assertEqual((rewound["resume_from"], logged), (f"{first['id']}?_step=2", [3]))
        # An evaluation adds to a step that was sent.
        made.log(3, b=1)
        ((rewound,), logged) = self.online(made, 3)
        self.assertEqual((rewound["resume_from"], logged), (f"{first['id']}?_step=2", [3]))
        made.cut(2)
        made.log(3, a=10)
        made.log(4, a=4)
        (_, resumed), logged = self.online(made, 4, fails_to_rewind=True)
        self.assertEqual((resumed, logged), (first, [4]))


class MLflowTest(unittest.TestCase):
    def setUp(self):
        self.folder = files.scratch()
        self.uri = f"sqlite:///{self.folder}/mlflow.db"

    def send(self, path):
        with files.inside(self.folder), contextlib.redirect_stdout(io.StringIO()):
            status = main(MLflow, [str(path), "--tracking-uri", self.uri, "--experiment", "x"])
        self.assertEqual(status, 0)

    def stored(self):
        from mlflow import MlflowClient

        client = MlflowClient(tracking_uri=self.uri)
        id = client.get_experiment_by_name("x").experiment_id
        (run,) = client.search_runs([id])
        rows = {}
        for key in run.data.metrics:
            for metric in client.get_metric_history(run.info.run_id, key):
                self.assertNotIn(key, rows.setdefault(metric.step, {}))
                rows[metric.step][key] = repr(float(metric.value))
        return client, run, rows

    def expected(self, path):
        return {
            step: {k: repr(v).replace("inf", "1.7976931348623157e+308") for k, v in row.items()}
            for step, row in numbers(path).items()
        }

    def test_a_run_is_stored_as_its_files_have_it_and_after_a_rewind_too(self):
        path = copy_of_run()
        metrics = path / "train" / "metrics.jsonl"
        with open(metrics, "a") as file:
            file.write('{"step":47,"time":1,"n":"NaN","i":"Infinity"}\n')
        self.send(path)
        client, run, rows = self.stored()
        self.assertEqual(rows, self.expected(path))
        self.assertEqual((run.info.status, run.info.run_name), ("FINISHED", path.name))
        self.assertEqual(run.data.params["optimizer/lr/from"], "0.006")
        self.assertEqual(run.data.tags["stepop.state"], "done")
        artifacts = {one.path for one in client.list_artifacts(run.info.run_id, "train/log_op")}
        images = (path / "train" / "train" / "log_op").glob("*.png")
        self.assertEqual(artifacts, {f"train/log_op/{one.name}" for one in images})
        # More steps continue the same one; steps that are logged again make a new one.
        with open(metrics, "a") as file:
            file.write('{"step":48,"time":2,"a":1}\n')
        self.send(path)
        _, same, rows = self.stored()
        self.assertEqual((same.info.run_id, rows), (run.info.run_id, self.expected(path)))
        lines = metrics.read_text().splitlines(keepends=True)
        metrics.write_text("".join(lines[:-1]) + '{"step":48,"time":2,"a":2}\n')
        self.send(path)
        _, other, rows = self.stored()
        self.assertNotEqual(other.info.run_id, run.info.run_id)
        self.assertEqual(rows, self.expected(path))
