"""LeNet trained on 28x28 images with Adam, by the loops of other frameworks.

    framework_loops.py data FOLDER                writes the images: the tree's handwritten digits
    framework_loops.py write_jpegs FOLDER         writes JPEGs of about 256x256 in two classes, FOLDER/jpegs
    framework_loops.py kinds                      which of KINDS can run here, and why the others cannot
    framework_loops.py KIND FOLDER BATCH THREADS  KIND may be jpegs, too: "fused" on those

The last form trains, and answers each line STEPS on standard input with the seconds that so many steps
took. The examples are float tensors that lie in memory, ready to use, and PyTorch's DataLoader has no
worker processes, which for such data are slower. Nothing is logged, no checkpoint is written.
"""

import gzip
import importlib.metadata
import os
import pathlib
import sys
import time

import numpy as np

EXAMPLES = 60_000
#: The packages that a loop needs.
KINDS = {"adam": ["torch"], "fused": ["torch"], "compiled": ["torch"], "lightning": ["torch", "lightning"],
         "ignite": ["torch", "pytorch-ignite"], "jax": ["jax", "optax"]}
ANSWERS = sys.stdout


def write_data(folder):
    """Each digit of 8x8 pixels three times as large, with a frame of two; again and again."""
    data = pathlib.Path(__file__).parents[2] / "configs" / "data"
    images = np.frombuffer(gzip.open(data / "digits-train-images.idx.gz").read(), np.uint8, offset=16)
    labels = np.frombuffer(gzip.open(data / "digits-train-labels.idx.gz").read(), np.uint8, offset=8)
    images = np.pad(images.reshape(-1, 8, 8).repeat(3, 1).repeat(3, 2), ((0, 0), (2, 2), (2, 2)))
    for name, array in [("images", images), ("labels", labels)]:
        array = np.resize(array, (EXAMPLES, *array.shape[1:]))
        header = np.array([0x800 + array.ndim, *array.shape], ">u4").tobytes()
        pathlib.Path(folder, name + ".idx").write_bytes(header + array.tobytes())


def read_data(folder):
    images = np.fromfile(f"{folder}/images.idx", np.uint8)[16:].reshape(-1, 1, 28, 28)
    labels = np.fromfile(f"{folder}/labels.idx", np.uint8)[8:]
    return images / np.float32(127.5) - 1, labels.astype(np.int64)


def write_jpegs(folder):
    from python_datasets import write_jpegs

    for name in "ab":
        (part := pathlib.Path(folder, "jpegs", name)).mkdir(parents=True)
        write_jpegs(str(part))


class Jpegs:
    """A dataset of PyTorch: each image decoded, grey and resized when it is asked for."""

    def __init__(self, folder):
        self.files = sorted(pathlib.Path(folder, "jpegs").glob("*/*.jpg"))

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        import torch
        from PIL import Image

        image = Image.open(self.files[index]).convert("L").resize((28, 28), Image.BILINEAR)
        return torch.from_numpy(np.array(image, np.float32)[None] / 127.5 - 1), int(self.files[index].parent.name == "b")


class Turns:
    """Lets a loop train only when it is asked to: `next()` comes before each step."""

    def __init__(self, finish=lambda: None):
        self.left, self.start, self.finish = 0, None, finish

    def next(self, *_):
        if self.left == 0:
            self.finish()
            if self.start is not None:
                print(time.perf_counter() - self.start, file=ANSWERS, flush=True)
            line = sys.stdin.readline()
            if not line:
                os._exit(0)
            self.left, self.start = int(line), time.perf_counter()
        self.left -= 1


def train_torch(kind, folder, batch_size, threads):
    import torch
    from torch import nn
    from torch.nn.functional import cross_entropy
    from torch.utils.data import DataLoader, TensorDataset

    torch.set_num_threads(threads)
    torch.manual_seed(1)
    data = Jpegs(folder) if kind == "jpegs" else TensorDataset(*map(torch.from_numpy, read_data(folder)))
    loader = DataLoader(data, batch_size=batch_size, shuffle=True, drop_last=True)
    model = nn.Sequential(  # as models/lenet
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=None if kind == "adam" else True)
    turns = Turns()
    if kind == "lightning":
        import lightning

        class Module(lightning.LightningModule):
            def __init__(self):
                super().__init__()
                self.model = model

            def training_step(self, batch):
                return cross_entropy(self.model(batch[0]), batch[1])

            def configure_optimizers(self):
                return optimizer

            def on_train_batch_start(self, *_):
                turns.next()

        lightning.Trainer(accelerator="cpu", max_epochs=-1, logger=False, enable_checkpointing=False,
                          enable_progress_bar=False, enable_model_summary=False).fit(Module(), loader)
    if kind == "ignite":
        from ignite.engine import Events, create_supervised_trainer

        trainer = create_supervised_trainer(model, optimizer, cross_entropy)
        trainer.add_event_handler(Events.ITERATION_STARTED, turns.next)
        trainer.run(loader, max_epochs=10**6)
    forward = torch.compile(model) if kind == "compiled" else model
    while True:
        for batch, classes in loader:
            turns.next()
            optimizer.zero_grad()
            loss = cross_entropy(forward(batch), classes)
            loss.backward()
            optimizer.step()


def train_jax(images, labels, batch_size):
    """One compiled function a step, as JAX is used; it takes the threads that it finds."""
    import functools

    import jax
    import optax
    from jax import lax, nn
    from jax import numpy as jnp

    images = images.transpose(0, 2, 3, 1).copy()
    random = np.random.default_rng(1)
    shapes = [(5, 5, 1, 6), (5, 5, 6, 16), (400, 120), (120, 84), (84, 10)]
    parameters = [(jnp.asarray(random.standard_normal(shape, np.float32) / np.prod(shape[:-1]) ** 0.5),
                   jnp.zeros(shape[-1])) for shape in shapes]
    optimizer = optax.adam(1e-3)

    def loss_of(parameters, x, classes):
        for (weight, bias), padding in zip(parameters[:2], (2, 0)):
            x = lax.conv_general_dilated(x, weight, (1, 1), [(padding, padding)] * 2,
                                         dimension_numbers=("NHWC", "HWIO", "NHWC"))
            x = lax.reduce_window(nn.relu(x + bias), -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        x = x.reshape(len(x), -1)
        for weight, bias in parameters[2:4]:
            x = nn.relu(x @ weight + bias)
        logits = x @ parameters[4][0] + parameters[4][1]
        return optax.softmax_cross_entropy_with_integer_labels(logits, classes).mean()

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def step(parameters, state, x, classes):
        gradients = jax.grad(loss_of)(parameters, x, classes)
        updates, state = optimizer.update(gradients, state)
        return optax.apply_updates(parameters, updates), state

    state = optimizer.init(parameters)
    turns = Turns(finish=lambda: jax.block_until_ready(parameters))
    while True:
        order = random.permutation(EXAMPLES)
        for begin in range(0, EXAMPLES - batch_size + 1, batch_size):
            rows = order[begin:begin + batch_size]
            turns.next()
            parameters, state = step(parameters, state, images[rows], labels[rows])


def version_of(package):
    """Throws PackageNotFoundError."""
    return f"{package} {importlib.metadata.version(package)}"


def print_kinds():
    """A line for each kind: its name, and the versions of its packages or nothing."""
    for kind, packages in KINDS.items():
        try:
            print(kind, ", ".join(map(version_of, packages)))
        except importlib.metadata.PackageNotFoundError:
            print(kind)


def main():
    global ANSWERS
    if sys.argv[1] == "kinds":
        return print_kinds()
    if sys.argv[1] in ("data", "write_jpegs"):
        return {"data": write_data, "write_jpegs": write_jpegs}[sys.argv[1]](sys.argv[2])
    kind, folder, batch_size, threads = sys.argv[1:]
    ANSWERS, sys.stdout = sys.stdout, sys.stderr  # frameworks print, too
    if kind == "jax":
        train_jax(*read_data(folder), int(batch_size))
    train_torch(kind, folder, int(batch_size), int(threads))


if __name__ == "__main__":
    main()
