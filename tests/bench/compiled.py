"""Steps of networks from Python: as graphs, with compiled passes, and in PyTorch with and without torch.compile.

    .venv/bin/python tests/bench/compiled.py [--rounds 3] [--seconds 3] [--threads 2 1] [--precision float32] [NETWORK ...]

Whole programs train one after the other, in rounds, on the same batches with Adam: stepop with `class: Exported`, the same
with `compiled: true`, and PyTorch's loop with Adam(fused=True), eager and with torch.compile. Each cell has the median of
steps a second; in brackets how many times as fast the compiled passes are, the median over the rounds. Above each network
stands what compiling took and what it adds to the file. With STEPOP_BENCH_DEVICE=cuda everything is on the GPU, in larger
batches, and PyTorch is also compiled with mode="max-autotune".
"""

import argparse
import glob
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import torch
from torch import nn
from torch.nn import functional

HERE = pathlib.Path(__file__).parent
STEPOP = os.environ.get("STEPOP") or HERE.parents[1] / "build" / "stepop"
PACKAGE = HERE.parents[1] / "eval_out" / "python"
BATCHES = 8  # that the data consist of
DEVICE = os.environ.get("STEPOP_BENCH_DEVICE", "cpu")


class Attention(nn.Module):
    def __init__(self, width, heads, is_causal):
        super().__init__()
        self.heads, self.is_causal = heads, is_causal
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        b, t, w = x.shape
        q, k, v = (each.view(b, t, self.heads, -1).transpose(1, 2) for each in self.qkv(x).chunk(3, -1))
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=self.is_causal)
        return self.out(y.transpose(1, 2).reshape(b, t, w))


class Layer(nn.Module):
    def __init__(self, width, heads, is_causal):
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(width), Attention(width, heads, is_causal)
        self.norm2, self.mlp = nn.LayerNorm(width), nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    """The layers of GPT-2, from tokens [B, T] to logits [B, words, T]."""

    def __init__(self, layers, width, heads, words, length):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.layers = nn.Sequential(*[Layer(width, heads, is_causal=True) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, image):
        x = self.words(image) + self.places.weight[: image.shape[1]]
        return self.head(self.norm(self.layers(x))).transpose(1, 2)


class ViT(nn.Module):
    def __init__(self, size, patch, width, layers, heads):
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.places = nn.Parameter(torch.randn(1, (size // patch) ** 2, width) * 0.02)
        self.layers = nn.Sequential(*[Layer(width, heads, is_causal=False) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 10)

    def forward(self, image):
        x = self.patches(image).flatten(2).transpose(1, 2) + self.places
        return self.head(self.norm(self.layers(x)).mean(1))


class ConvNeXtBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.depthwise, self.norm = nn.Conv2d(width, width, 7, padding=3, groups=width), nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        return x + self.mlp(self.norm(self.depthwise(x).permute(0, 2, 3, 1))).permute(0, 3, 1, 2)


def convnext(widths=(40, 80, 160, 320), depths=(2, 2, 6, 2)):
    parts, before = [], 3
    for width, depth in zip(widths, depths):
        stride = 4 if before == 3 else 2
        parts += [nn.Conv2d(before, width, stride, stride), *[ConvNeXtBlock(width) for _ in range(depth)]]
        before = width
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, 10))


class LSTM(nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.words, self.lstm, self.head = nn.Embedding(words, width), nn.LSTM(width, width, 2, batch_first=True), nn.Linear(width, words)

    def forward(self, image):
        return self.head(self.lstm(self.words(image))[0]).transpose(1, 2)


class VUNetPainter(nn.Module):
    """VUNet of `tests/models/vunet`, from appearance and pose [B, 6, size, size] to logits of three colors [B, 3, size, size]."""

    def __init__(self, size, nf_start, nf_max):
        super().__init__()
        sys.path.insert(0, str(HERE.parent / "models" / "vunet"))
        from torch_vunet import VUNet

        self.vunet = VUNet(size, nf_start, nf_max, final_act=True)

    def forward(self, image):
        appearance, pose = image.chunk(2, 1)
        return self.vunet(pose, appearance)


def others(name):
    """LeNet and ResNet-18 of `exported_nets.py`."""
    sys.argv = ["exported_nets.py", os.devnull]
    sys.path.insert(0, str(HERE))
    import exported_nets

    return exported_nets.LeNet() if name == "lenet" else exported_nets.ResNet18()


def images(batch, *size):
    return lambda: (torch.randn(batch * BATCHES, *size), torch.randint(0, 10, (batch * BATCHES,)), batch)


def paintings(batch, size):
    return lambda: (torch.randn(batch * BATCHES, 6, size, size), torch.randint(0, 3, (batch * BATCHES, size, size)), batch)


def tokens(batch, length, words):
    return lambda: (*torch.randint(0, words, (2, batch * BATCHES, length)), batch)


#: The network and its data, by a name that says both.
NETWORKS = {
    "GPT of 4 layers of 128, 8 x 64 tokens": (lambda: GPT(4, 128, 4, 1000, 64), tokens(8, 64, 1000)),
    "GPT-2 small, 2 x 128 tokens": (lambda: GPT(12, 768, 12, 50257, 128), tokens(2, 128, 50257)),
    "ResNet-18, 8 x 64x64": (lambda: others("resnet18"), images(8, 3, 64, 64)),
    "ConvNeXt of 40 to 320, 8 x 64x64": (convnext, images(8, 3, 64, 64)),
    "ViT-Tiny, 8 x 64x64": (lambda: ViT(64, 8, 192, 12, 3), images(8, 3, 64, 64)),
    "VUNet of 32 to 64, 4 x 64x64": (lambda: VUNetPainter(64, 32, 64), paintings(4, 64)),
    "LeNet, 4 x 28x28": (lambda: others("lenet"), images(4, 1, 28, 28)),
    "LSTM of 2 layers of 256, 8 x 64 tokens": (lambda: LSTM(1000, 256), tokens(8, 64, 1000)),
}
if DEVICE == "cuda":
    NETWORKS = {
        "GPT-2 small, 16 x 1024 tokens": (lambda: GPT(12, 768, 12, 50257, 1024), tokens(16, 1024, 50257)),
        "GPT-2 small, 16 x 256 tokens": (lambda: GPT(12, 768, 12, 50257, 256), tokens(16, 256, 50257)),
        "ResNet-18, 128 x 64x64": (lambda: others("resnet18"), images(128, 3, 64, 64)),
        "ViT of 12 layers of 384, 64 x 224x224": (lambda: ViT(224, 16, 384, 12, 6), images(64, 3, 224, 224)),
        "LeNet, 64 x 28x28": (lambda: others("lenet"), images(64, 1, 28, 28)),
    }


def make(name):
    torch.manual_seed(1)
    return NETWORKS[name][0](), NETWORKS[name][1]()


def loop(name, kind, threads, precision):
    """Answers each line, a number of steps, with the seconds that they took."""
    torch.set_num_threads(int(threads))
    net, (inputs, labels, batch) = make(name)
    net = net.to(DEVICE)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-4, fused=True)
    model = net if kind == "PyTorch" else torch.compile(net, mode="max-autotune" if kind == "max-autotune" else None)
    batches = list(zip(inputs.to(DEVICE).split(batch), labels.to(DEVICE).split(batch)))
    for line in sys.stdin:
        begin = time.perf_counter()
        for i in range(int(line)):
            x, y = batches[i % BATCHES]
            with torch.autocast(DEVICE, torch.bfloat16, enabled=precision == "bfloat16"):
                loss = functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        loss.item()
        print(time.perf_counter() - begin, flush=True)


#: How PyTorch trains.
LOOPS = ["torch.compile", "PyTorch", *(["max-autotune"] if DEVICE == "cuda" else [])]


class Loop:
    """PyTorch's loop in a process of its own."""

    def __init__(self, name, kind, threads, precision):
        words = [sys.executable, "-B", __file__, "--loop", name, kind, str(threads), precision]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.ask(3)
        self.steps = 0

    def ask(self, steps):
        print(steps, file=self.process.stdin, flush=True)
        return steps / float(self.process.stdout.readline())

    def rate(self, seconds):
        self.steps = self.steps or max(5, int(seconds * self.ask(5)))
        return self.ask(self.steps)


class Stepop:
    """A whole training; its steps a second are those behind the first tenth."""

    def __init__(self, folder, batch, compiled, threads, precision):
        self.folder, self.batch, self.compiled, self.threads, self.precision = folder, batch, compiled, threads, precision
        self.steps = 0

    def rate(self, seconds):
        if not self.steps:
            self.steps = 20
            self.steps = max(20, int(seconds * self.train()))
        return self.train()

    def train(self):
        with tempfile.TemporaryDirectory() as logs:
            config = pathlib.Path(logs, "a.yaml")
            # In one epoch, as each ends with a checkpoint.
            part = f"{{class: Npy, files: {{image: {self.folder}/inputs.npy, class: {self.folder}/labels.npy}}}}"
            parts = ", ".join([part] * (1 + self.steps // BATCHES))
            config.write_text(
                f"iterator: Classifier\nmodel: {{class: Exported, path: {self.folder}/net.pt2, compiled: {self.compiled}}}\n"
                f"optimizer: {{class: Adam, lr: 1e-4}}\nlog_ops: []\nbatch_size: {self.batch}\nnum_steps: {self.steps}\n"
                f"datasets: {{train: {{class: Concat, datasets: [{parts}]}}}}\n"
                f"num_threads: {self.threads}\nlog_freq: {self.steps // 10}\ndevice: {DEVICE}\nprecision: {self.precision}\n")
            done = subprocess.run([STEPOP, "-n", "a", "-b", config, "-t", "--logs", logs], capture_output=True, text=True)
            if done.returncode != 0:
                sys.exit(done.stderr)
            lines = [json.loads(line) for line in open(glob.glob(f"{logs}/*/train/metrics.jsonl")[0])]
        lines = [line for line in lines if line.get("step", 0) >= self.steps // 10]
        return (lines[-1]["step"] - lines[0]["step"]) / (lines[-1]["time"] - lines[0]["time"])


def export(name, folder, precision):
    """Writes the network with its compiled passes, and the data; what was said of compiling."""
    import numpy

    sys.path.insert(0, str(PACKAGE))
    from stepop.eval.export import export_mode, write_programs
    from stepop.eval.export_compile import add_passes
    from stepop.eval.export_target import Target

    net, (inputs, labels, batch) = make(name)
    example = [inputs[:batch]]
    programs = {each: export_mode(net, example, training, 0, [{0}]) for each, training in (("model", True), ("eval", False))}
    path = f"{folder}/net.pt2"
    write_programs(programs, path)
    numpy.save(f"{folder}/inputs.npy", inputs.numpy())
    numpy.save(f"{folder}/labels.npy", labels.numpy())
    return add_passes(path, programs, example, Target(DEVICE, precision), path)


def measure(name, threads_of, rounds, seconds, precision):
    with tempfile.TemporaryDirectory() as folder:
        print(f"{name}: {export(name, folder, precision)}", flush=True)
        batch = make(name)[1][2]
        for threads in threads_of:
            programs = {"compiled": Stepop(folder, batch, "true", threads, precision),
                        "graph": Stepop(folder, batch, "false", threads, precision)}
            programs.update({kind: Loop(name, kind, threads, precision) for kind in LOOPS})
            rates = {each: [] for each in programs}
            try:
                for _ in range(rounds):
                    for each, program in programs.items():
                        rates[each].append(program.rate(seconds))
            finally:
                for program in programs.values():
                    if isinstance(program, Loop):
                        program.process.kill()
                        program.process.wait()
            cells = []
            for each, found in rates.items():
                ratio = statistics.median(ours / other for ours, other in zip(rates["compiled"], found))
                cells.append(f"{statistics.median(found):,.1f}" + ("" if each == "compiled" else f" ({ratio:.2f})"))
            print(f"| {name} | {threads} | " + " | ".join(cells) + " |", flush=True)


def main():
    if sys.argv[1:2] == ["--loop"]:
        return loop(*sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3, help="of each portion")
    parser.add_argument("--threads", type=int, nargs="+", default=[2, 1])
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("networks", nargs="*", metavar="NETWORK", help="a part of a name: " + "; ".join(NETWORKS))
    arguments = parser.parse_args()
    print("| network | threads | compiled | graph | " + " | ".join(LOOPS) + " |\n" + "|---" * (4 + len(LOOPS)) + "|")
    for name in NETWORKS:
        if not arguments.networks or any(each in name for each in arguments.networks):
            measure(name, arguments.threads, arguments.rounds, arguments.seconds, arguments.precision)


if __name__ == "__main__":
    main()
