"""Makes what tests/iterators/extensible/byol_test.cpp compares with: the losses, gradients and weights of
DL-Art-School's own BYOL, run from its code, of two views of pictures in two iterations.

    make.py CODES    CODES is the folder codes/ of neonbjb/DL-Art-School at f31a333; needs torch and safetensors

Writes values.safetensors beside itself.
"""

import pathlib
import sys

import torch
from safetensors.torch import save_file

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "extensible"))
import dl_art_school  # noqa: E402

dl_art_school.Stubs.NAMES = dl_art_school.Stubs.NAMES | {"munch", "torchaudio", "orjson", "data", "tqdm"}
dl_art_school.prepare(sys.argv[1])
from models.image_latents.byol import byol_model_wrapper as byol  # noqa: E402

byol.checkpoint = lambda module, *inputs: module(*inputs)


def network():
    """The network that is trained; tests/iterators/extensible/byol_test.cpp has the same one."""
    return torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3, stride=2, padding=1), torch.nn.ReLU())


def values(is_structural):
    torch.manual_seed(6)
    net = byol.BYOL(network(), image_size=16, hidden_layer=-1, projection_size=5, projection_hidden_size=7,
                    moving_average_decay=0.9, structural_mlp=is_structural, perform_augmentation=False)
    for parameter in net.target_encoder.parameters():  # else the average is of equal weights
        parameter.data += 0.05 * torch.randn_like(parameter)
    views = torch.randint(0, 256, (2, 4, 3, 16, 16), dtype=torch.uint8)
    tensors = {"one": views[0], "two": views[1]}
    tensors |= {f"before/{name}": value.clone() for name, value in net.state_dict().items()}
    one, two = (view / 127.5 - 1 for view in views)
    optimizer = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=0.5)
    net.train()
    for iteration in range(2):
        net.update_for_step(iteration, "")
        loss = net(one, two)
        optimizer.zero_grad()
        loss.backward()
        tensors[f"loss/{iteration}"] = loss.detach()
        if iteration == 0:
            tensors |= {f"gradient/{name}": p.grad.clone() for name, p in net.named_parameters() if p.requires_grad}
        optimizer.step()
    tensors |= {f"after/{name}": value.clone() for name, value in net.state_dict().items()}
    return tensors


made = {f"flat/{name}": value for name, value in values(False).items()}
made |= {f"structural/{name}": value for name, value in values(True).items()}
save_file({name: value.contiguous() for name, value in made.items()}, HERE / "values.safetensors")
