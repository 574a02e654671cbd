"""Files of weights as PyTorch's users have them, in a folder; `x.safetensors` has the tensors of `x`."""
import collections
import json
import sys

import torch
from safetensors.torch import save_file
from torch import nn

folder = sys.argv[1] + "/"
torch.manual_seed(1)
TYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16,
         torch.int8, torch.uint8, torch.bool]
types = {str(t)[6:]: (torch.randn(3, 5) * 40).to(t) for t in TYPES}
types["number"] = torch.tensor(2.5)
types["empty"] = torch.zeros(0, 4)
base = torch.arange(24.0)
views = {"turned": base.view(4, 6).t(), "part": base[3:21:2], "whole": base, "tied": base}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 3)
        self.norm = nn.BatchNorm1d(3)


class Options(dict):
    pass


def write(name, value, tensors):
    torch.save(value, folder + name)
    torch.save(value, folder + "old-" + name, _use_new_zipfile_serialization=False)
    for each in [name, "old-" + name]:
        save_file({k: v.detach().clone().contiguous() for k, v in tensors.items()}, folder + each + ".safetensors")


net = Net()
state = net.state_dict()
optimizer = torch.optim.Adam(net.parameters())
net.fc(torch.ones(2, 4)).sum().backward()
optimizer.step()
write("types.pt", types, types)
write("views.pt", views, views)
write("state.pth", state, state)
write("parameters.bin", dict(net.named_parameters()), dict(net.named_parameters()))
write("lightning.ckpt",
      {"epoch": 3, "state_dict": collections.OrderedDict((f"net.{k}", v) for k, v in state.items()), "loops": {1, 2},
       "hyper_parameters": Options(lr=1e-3, big=2**100, of=optimizer.__class__), "nothing": None, "shape": (1, -2, 3.5),
       "optimizer_states": [optimizer.state_dict()]},
      {f"state_dict.net.{k}": v for k, v in state.items()})
torch.save(net, folder + "object.pt")
torch.save([1, 2], folder + "list.pt")
torch.save({"epoch": 3}, folder + "none.pt")
torch.save({"wide": torch.zeros(1).expand(1000)}, folder + "expanded.pt")
torch.save({"sparse": torch.eye(3).to_sparse()}, folder + "sparse.pt")
torch.jit.save(torch.jit.trace(nn.Linear(2, 2), torch.ones(1, 2)), folder + "script.pt")
for part, names in [("a.bin", ["fc.weight", "fc.bias"]), ("b.safetensors", ["norm.weight"])]:
    (torch.save if part.endswith("bin") else save_file)({k: state[k] for k in names}, folder + part)
json.dump({"metadata": {}, "weight_map": {"fc.weight": "a.bin", "fc.bias": "a.bin", "norm.weight": "b.safetensors"}},
          open(folder + "model.bin.index.json", "w"))
json.dump({"weight_map": {"fc.weight": "../a.bin"}}, open(folder + "out.index.json", "w"))
