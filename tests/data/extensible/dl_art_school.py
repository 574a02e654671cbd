"""Imports modules of DL-Art-School (neonbjb/DL-Art-School at f31a333) on a machine that lacks most of
what they import, and no GPU: what is missing is a stub, which fails when it is used."""

import importlib.abc
import importlib.machinery
import sys
import types
from unittest import mock

import torch


class Stubs(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Stands in for modules that nothing else has found."""

    NAMES = {"kornia", "torchvision", "cv2", "audio2numpy", "scp", "paramiko", "matplotlib", "unidecode", "inflect", "vector_quantize_pytorch",
             "linear_attention_transformer", "torch._six", "models.audio.music.cheater_gen_ar", "utils.music_utils"}

    def find_spec(self, name, path=None, target=None):
        if name in self.NAMES or name.split(".")[0] in self.NAMES:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        module = types.ModuleType(spec.name)
        module.__getattr__ = lambda name: mock.MagicMock(name=f"{spec.name}.{name}")
        module.__path__ = []
        return module

    def exec_module(self, module):
        pass


def prepare(codes):
    sys.path.insert(0, codes)
    sys.meta_path.insert(0, Stubs())
    torch.cuda.is_available = lambda: True  # asserted when StyleGAN 2 is imported; nothing uses it
    # Packages whose __init__ would import all that they have.
    for name in ("models.audio", "models.audio.tts", "models.audio.tts.tacotron2"):
        package = types.ModuleType(name)
        package.__path__ = [codes + "/" + name.replace(".", "/")]
        sys.modules[name] = package


class Options(dict):
    """What DL-Art-School makes of a config: None for a key that is missing."""

    def __missing__(self, key):
        return None

    def copy(self):
        return Options(self)


def options(value):
    if isinstance(value, dict):
        return Options({key: options(item) for key, item in value.items()})
    return value
