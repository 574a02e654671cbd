"""python exported_dropout.py FOLDER RUN: goes on from the first checkpoint of a training of Dropped, in a loop of PyTorch.

Fails where the losses, the last weights or the last state of the generator differ from the training's.
"""

import json
import sys

import numpy
import torch
from safetensors.torch import load_file

folder, run = sys.argv[1:3]
sys.path.insert(0, folder)
from net import Dropped  # noqa: E402

BEGIN, END, BATCH = 1, 21, 4
torch.set_num_threads(1)


def checkpoint(step):
    tensors = load_file(f"{run}/train/checkpoints/model-{step}.safetensors")
    return {key.removeprefix("model."): each for key, each in tensors.items() if key.startswith("model.")}, tensors["random.cpu"]


images = torch.from_numpy(numpy.load(folder + "/images.npy"))
labels = torch.from_numpy(numpy.load(folder + "/labels.npy"))
with open(f"{run}/train/metrics.jsonl") as file:
    rows = [json.loads(line) for line in file]
expected = [row["train/log_op/loss"] for row in rows if "train/log_op/loss" in row]
assert len(expected) == END, len(expected)

net = Dropped().train()
weights, state = checkpoint(BEGIN)
net.load_state_dict(weights)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
torch.set_rng_state(state)
for step in range(BEGIN, END):
    places = [i % len(images) for i in range(step * BATCH, (step + 1) * BATCH)]
    loss = torch.nn.functional.cross_entropy(net(images[places]), labels[places])
    assert abs(loss.item() - expected[step]) < 1e-4, (step, loss.item(), expected[step])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
weights, state = checkpoint(END)
for key, each in net.state_dict().items():
    assert torch.allclose(each, weights[key], 1e-4, 1e-4), key
assert torch.equal(torch.get_rng_state(), state)
