"""Networks that people bring, with random weights. They need torchvision, timm and transformers:

    python tests/models/exported_nets.py FOLDER eval_out/python tests/models/exported_zoo.py
    STEPOP_ZOO=FOLDER build/stepop_tests --source-file='*models/exported_test*'

compares results in both modes, gradients and buffers with PyTorch's. With compiled passes:

    python tests/models/compiled_nets.py FOLDER eval_out/python resnet18 mobilenet vit convnext efficientnet gpt2 bert
    STEPOP_ZOO=FOLDER build/stepop_tests --source-file='*models/compiled_test*'
"""

import torch
from torch import nn


class Part(nn.Module):
    """A network of transformers, from tokens to one of its results."""

    def __init__(self, net, result):
        super().__init__()
        self.net = net
        self.result = result

    def forward(self, tokens):
        return getattr(self.net(tokens), self.result)


def timm(name, size):
    from timm import create_model

    return create_model(name, num_classes=10), [torch.randn(2, 3, size, size)]


def torchvision(name):
    from torchvision import models

    return getattr(models, name)(num_classes=10), [torch.randn(2, 3, 64, 64)]


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(vocab_size=1000, use_cache=False)  # GPT-2 small but for its words: 12 layers of 768
    return Part(GPT2LMHeadModel(config), "logits"), [torch.randint(0, 1000, (2, 16))]


def bert():
    from transformers import BertConfig, BertModel

    config = BertConfig(vocab_size=1000, num_hidden_layers=2, hidden_size=128, num_attention_heads=2, intermediate_size=512)
    return Part(BertModel(config), "last_hidden_state"), [torch.randint(0, 1000, (2, 16))]


networks = {"resnet18": lambda: torchvision("resnet18"), "mobilenet": lambda: torchvision("mobilenet_v3_small"),
            "vit": lambda: timm("vit_tiny_patch16_224", 224), "convnext": lambda: timm("convnext_atto", 64),
            "efficientnet": lambda: timm("efficientnet_b0", 64), "gpt2": gpt2, "bert": bert}
