"""Makes what perceptual_test.cpp compares with, by PyTorch: a VGG19 with few channels and random weights.

    torch_vgg19.py FILE    tests/data/vgg19/thin.safetensors was made by it
"""

import sys

import torch
from safetensors.torch import save_file
from torch import nn

# Channels of torchvision's configuration "E", a number a convolution, up to relu5_2.
LAYERS = [3, 4, "M", 5, 6, "M", 6, 7, 7, 7, "M", 8, 8, 8, 8, "M", 8, 9]
TAKEN = {3, 8, 13, 22, 31}  # relu1_2, relu2_2, relu3_2, relu4_2, relu5_2
WEIGHTS = [0.5, 1.0, 2.0, 0.25, 4.0, 8.0]


def features():
    modules, channels = [], 3
    for layer in LAYERS:
        if layer == "M":
            modules.append(nn.MaxPool2d(2, 2))
        else:
            modules += [nn.Conv2d(channels, layer, 3, padding=1), nn.ReLU()]
            channels = layer
    return nn.Sequential(*modules)


def taken(net, images):
    mean = torch.tensor([0.485, 0.456, 0.406]).reshape(3, 1, 1)
    deviation = torch.tensor([0.229, 0.224, 0.225]).reshape(3, 1, 1)
    x = (torch.clamp(images / 2 + 0.5, 0, 1) - mean) / deviation
    outputs = [images]
    for i, module in enumerate(net):
        x = module(x)
        if i in TAKEN:
            outputs.append(x)
    return outputs


torch.manual_seed(5)
net = features()
for module in net:
    if isinstance(module, nn.Conv2d):
        nn.init.kaiming_normal_(module.weight)  # keeps the size of activations through all layers
        nn.init.normal_(module.bias, std=0.1)
image = (0.8 * torch.randn(2, 3, 16, 16)).requires_grad_()  # some outside of [-1, 1]
target = 0.8 * torch.randn(2, 3, 16, 16)
pairs = zip(taken(net, image), taken(net, target))
loss = sum(w * (a - b).abs().mean((1, 2, 3)) for w, (a, b) in zip(WEIGHTS, pairs))
(loss * torch.tensor([1.0, -2.0])).sum().backward()

tensors = {"features." + name: tensor for name, tensor in net.state_dict().items()}
tensors |= {"image": image, "target": target, "loss": loss, "gradient": image.grad,
            "weights": torch.tensor(WEIGHTS)}
tensors |= {f"layer.{i}": output for i, output in enumerate(taken(net, target))}
save_file({name: tensor.detach().clone() for name, tensor in tensors.items()}, sys.argv[1])
