"""Makes what tests/models/vqvae/vqvae_test.cpp compares with: what DL-Art-School's own VQVAE, run from its code, makes
of two images, its losses and gradients, and its weights and codebooks after one update.

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

dl_art_school.Stubs.NAMES = dl_art_school.Stubs.NAMES | {"munch", "torchaudio", "orjson"}
dl_art_school.prepare(sys.argv[1])
from models.vqvae import vqvae  # noqa: E402

vqvae.checkpoint = lambda module, *inputs: module(*inputs)

torch.manual_seed(4)
net = vqvae.VQVAE(in_channel=3, channel=8, n_res_block=1, n_res_channel=4, codebook_dim=4, codebook_size=6)
images = torch.randint(0, 256, (2, 3, 16, 24), dtype=torch.uint8)
tensors = {"images": images}
tensors |= {f"before/{name}": value.clone() for name, value in net.state_dict().items()}
x = images / 127.5 - 1
net.eval()
made, loss = net(x)
tensors |= {"eval/made": made.detach(), "eval/commitment": loss.detach()}
net.train()
made, commitment = net(x)
pixels = torch.nn.functional.mse_loss(made, x)
(pixels + 0.25 * commitment.mean()).backward()
tensors |= {"pixels": pixels.detach(), "commitment": commitment.detach()}
tensors |= {f"gradient/{name}": value.grad.clone() for name, value in net.named_parameters()}
torch.optim.SGD(net.parameters(), lr=0.5).step()
tensors |= {f"after/{name}": value.clone() for name, value in net.state_dict().items()}
save_file({name: value.contiguous() for name, value in tensors.items()}, HERE / "values.safetensors")
