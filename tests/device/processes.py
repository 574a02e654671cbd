"""Two processes on one GPU whose sums go through NCCL, beside sums through Gloo and a training on the CPU.

    processes.py STEPOP DEVICE FOLDER

NCCL refuses two processes on one GPU of one machine. So each process gets a host name of its own (`unshare --uts`, as
root), and NCCL's messages go through the network's loopback. Right, and slow: the two take turns on the GPU.
With the device `cpu` all goes through Gloo, which tries this script itself.
"""

import os
import pathlib
import re
import signal
import socket
import subprocess
import time

from trainings import CONFIGS, DEVICE, DIGITS, FOLDER, PIX2PIX, STEPOP, VUNET, finish, losses, same_bits, tensors

CONNECTED = [] if DEVICE == "cpu" else ["--distributed/backend", "nccl"]
STEPS = 20


class Pair:
    """Two processes that train together; `host_names` of their own."""

    def __init__(self, name, words, host_names=True):
        self.name = name
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            port = listener.getsockname()[1]
        self.begin = time.time()
        self.processes = []
        for rank in range(2):
            as_host = ["unshare", "--uts", "sh", "-c", f'hostname gpu{rank} && exec "$@"', "-"] if host_names else []
            env = os.environ | {"RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1",
                                "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "GLOO_SOCKET_IFNAME": "lo",
                                "NCCL_SOCKET_IFNAME": "lo", "NCCL_IB_DISABLE": "1", "NCCL_DEBUG": "WARN", "NCCL_HOSTID": f"gpu{rank}",
                                "OMP_NUM_THREADS": "2"}
            self.processes.append(subprocess.Popen([*as_host, STEPOP, *words], cwd=FOLDER, env=env, text=True,
                                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT))

    def kill(self, rank, what=signal.SIGKILL):
        self.processes[rank].send_signal(what)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            if process.poll() is None:
                process.kill()

    def folder(self):
        folders = sorted(pathlib.Path(FOLDER, "logs").glob(f"*_{self.name}"))
        return folders[-1] if folders else None

    def wait_for(self, file):
        for _ in range(1200):
            if self.folder() and (self.folder() / file).exists():
                return
            if self.processes[0].poll() is not None:
                raise RuntimeError(f"ended before {file}: {self.processes[0].communicate()[0][-1500:]}")
            time.sleep(0.05)
        raise RuntimeError(f"no {file}")

    def end(self):
        """The exit codes, what both said, the seconds since the start."""
        texts = []
        for process in self.processes:
            try:
                texts.append(process.communicate(timeout=100)[0])
            except subprocess.TimeoutExpired:
                process.kill()
                texts.append(process.communicate()[0] + "\n(ran into the limit)")
        return [process.returncode for process in self.processes], texts, time.time() - self.begin


def words_of(name, configs, words, device=DEVICE, steps=STEPS):
    return ["-n", name, "-b", *(str(CONFIGS / config) for config in configs), "-t", "--device", device, "--num_steps",
            str(steps), "--log_freq", "{every: 5}", "--deterministic", "true", *words]


def trained(name, configs, words, device=DEVICE):
    """The run's folder and its seconds."""
    with Pair(name, words_of(name, configs, words, device)) as pair:
        codes, texts, seconds = pair.end()
    if codes != [0, 0]:
        raise RuntimeError(f"{name}: {codes}: {texts[0][-1200:]} | {texts[1][-600:]}")
    return pair.folder(), round(seconds, 1)


def beside_gloo(name, configs, words, tolerance=0.02):
    """The losses of a training whose sums stay on the device, beside those of one through Gloo, and on the CPU."""
    device, seconds = trained(f"{name}_device", configs, [*CONNECTED, *words])
    told = {"case": name, "seconds": seconds}
    others = {"gloo": DEVICE} | ({} if tolerance is None else {"cpu": "cpu"})
    for other, on in others.items():
        folder, took = trained(f"{name}_{other}", configs, words, on)
        expected, found = losses(folder), losses(device)
        worst = max(abs(found[step][key] - value) / max(abs(value), 1e-6)
                    for step in expected for key, value in expected[step].items())
        told |= {f"seconds_{other}": took, f"difference_{other}": float(f"{worst:.3g}")}
        limit = tolerance if other == "cpu" else 1e-6
        if not worst <= limit:  # also NaN
            told["failed"] = f"{other}: more than {limit}"
    return told


def sharded():
    """Halves of the optimizer's state give the same weights to the bit."""
    whole, _ = trained("whole", DIGITS, CONNECTED)
    halves, _ = trained("halves", DIGITS, [*CONNECTED, "--distributed/shard_optimizer", "true"])
    return {"case": "sharded"} | same_bits(whole, halves)


def resumed():
    """A process is killed; the other says so and ends; both resume to the bits of a training without that."""
    often = [*CONNECTED, "--ckpt_freq", "10", "--checkpoints/keep_last", "0", "--optimizer/lr", "1e-3"]
    whole, _ = trained("unkilled", DIGITS, often)
    with Pair("killed", words_of("killed", DIGITS, often, steps=4000)) as pair:
        pair.wait_for("train/checkpoints/model-10.safetensors")
        pair.kill(1)
        at = time.time()
        codes, texts, _ = pair.end()
    told = {"case": "killed", "codes": codes, "seconds_to_end": round(time.time() - at, 1),
            "said": texts[0].strip().splitlines()[-4:]}
    if codes[0] in (0, -6, -11) or "is gone" not in texts[0]:
        return told | {"failed": texts[0][-1500:]}
    checkpoints = pair.folder() / "train/checkpoints"
    for file in checkpoints.glob("*.safetensors"):  # back to the tenth step
        if file.name != "model-10.safetensors":
            file.unlink()
    with Pair("killed", ["-p", str(pair.folder()), "-t", "--num_steps", str(STEPS)]) as again:
        codes, texts, _ = again.end()
    if codes != [0, 0]:
        return told | {"failed": f"resume: {codes}: {texts[0][-1500:]}"}
    return told | same_bits(whole, again.folder())


def late():
    """A process that stands still is named after the time limit."""
    with Pair("late", words_of("late", DIGITS, [*CONNECTED, "--distributed/timeout", "5s"], steps=100000)) as pair:
        pair.wait_for("train/metrics.jsonl")
        pair.kill(1, signal.SIGSTOP)
        at = time.time()
        code = pair.processes[0].wait(timeout=100)
        seconds = time.time() - at
        pair.kill(1)
        _, texts, _ = pair.end()
    told = {"case": "late", "code": code, "seconds_to_end": round(seconds, 1), "said": texts[0].strip().splitlines()[-4:]}
    return told if code not in (0, -6, -11) and "rank 1 on " in texts[0] else told | {"failed": texts[0][-1500:]}


def wrong_class():
    """A mistake that both find before the run ends both with its error."""
    with Pair("wrong", words_of("wrong", DIGITS, [*CONNECTED, "--model/classes", "5"])) as pair:
        codes, texts, seconds = pair.end()
    told = {"case": "wrong_class", "codes": codes, "seconds": round(seconds, 1), "said": texts[0].strip().splitlines()[-4:]}
    return told if all(code in (1, 2) for code in codes) and "the network has 5 outputs" in texts[0] else told | {"failed": texts[0][-1500:]}


def one_device():
    """Two processes of one machine on one GPU are refused, with what to do."""
    with Pair("one", words_of("one", DIGITS, CONNECTED), host_names=False) as pair:
        codes, texts, _ = pair.end()
    told = {"case": "one_device", "codes": codes, "said": texts[0].strip().splitlines()[-3:]}
    return told if 0 not in codes and re.search("have the same", texts[0]) else told | {"failed": texts[0][-1500:]}


def same_ranks():
    """Both processes end with the same weights: a checkpoint would refuse others. Several messages, metrics, averages."""
    words = [*CONNECTED, "--model/hidden", "[512, 512]", "--metrics", "{f1: F1}", "--ema/decay", "0.9", "--ckpt_freq", "5"]
    folder, seconds = trained("messages", DIGITS, words)
    return {"case": "messages", "seconds": seconds, "tensors": len(tensors(folder / "train/checkpoints/model-20.safetensors"))}


def main():
    os.makedirs(FOLDER, exist_ok=True)
    jobs = [lambda: beside_gloo("digits", DIGITS, []), lambda: beside_gloo("digits_bfloat16", DIGITS, ["--precision", "bfloat16"], 0.1),
            lambda: beside_gloo("pix2pix", PIX2PIX, ["--batch_size", "4"], None), lambda: beside_gloo("vunet", VUNET, [], None),
            lambda: beside_gloo("normalized", ["extensible/toy_srgan.yaml"], ["--distributed/sync_batch_norm", "true"], None),
            sharded, resumed, same_ranks, wrong_class]
    if DEVICE != "cpu":
        jobs.append(one_device)
    finish(jobs, [late])


if __name__ == "__main__":
    main()
