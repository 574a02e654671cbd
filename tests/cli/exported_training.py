"""python exported_training.py FOLDER: a loop of PyTorch over the network of FOLDER/net.py.

Writes into the folder:
  images.npy, held_out.npy, labels.npy: the data
  first.pth, layers.pth: the weights that a training of Net, of Layers begins with
  plain.pt: the network as TorchScript
  NAME.json: the loss of each of 20 steps, and that of an evaluation of held_out.npy with the averages
  NAME.safetensors: the last weights, and the averages `ema_<parameter>`

NAME is float32, bfloat16 and frozen.
"""

import copy
import json
import sys

import numpy
import torch
from safetensors.torch import save_file

folder = sys.argv[1]
sys.path.insert(0, folder)
from net import Layers, Net  # noqa: E402

STEPS, BATCH = 20, 4
torch.set_num_threads(1)
torch.manual_seed(5)
images = torch.randn(STEPS * BATCH, 1, 8, 8)
held_out = torch.randn(images.shape)
labels = torch.randint(0, 3, (STEPS * BATCH,))
first = Net()
numpy.save(folder + "/images.npy", images.numpy())
numpy.save(folder + "/held_out.npy", held_out.numpy())
numpy.save(folder + "/labels.npy", labels.numpy())
torch.save(first.state_dict(), folder + "/first.pth")
torch.save(Layers().state_dict(), folder + "/layers.pth")
torch.jit.script(first).save(folder + "/plain.pt")


def train(name, frozen=(), autocast=False):
    net = copy.deepcopy(first).train()
    for key, parameter in net.named_parameters():
        parameter.requires_grad_(not key.startswith(tuple(frozen)))
    averages = {key: each.detach().clone() for key, each in net.named_parameters()}
    optimizer = torch.optim.Adam([each for each in net.parameters() if each.requires_grad], lr=1e-2)

    def loss_of(some_images, some_labels):
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            return torch.nn.functional.cross_entropy(net(some_images), some_labels)

    losses = []
    for i in range(0, STEPS * BATCH, BATCH):
        loss = loss_of(images[i:i + BATCH], labels[i:i + BATCH])
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        for key, parameter in net.named_parameters():
            averages[key].lerp_(parameter.detach(), 0.1)
    tensors = {key: each.clone() for key, each in net.state_dict().items()}
    tensors.update({"ema_" + key: each for key, each in averages.items()})
    save_file(tensors, f"{folder}/{name}.safetensors")
    net.load_state_dict(averages, strict=False)
    net.eval()
    with torch.no_grad(), open(f"{folder}/{name}.json", "w") as file:
        json.dump({"losses": losses, "evaluation": loss_of(held_out, labels).item()}, file)


train("float32")
train("bfloat16", autocast=True)
train("frozen", frozen=["features.0."])
