"""The tensors of `bit_patterns()` in safetensors_bits_test.cpp, from Python:
    python safetensors_bits.py write PATH
    python safetensors_bits.py check PATH
"""

import sys

import torch
from safetensors.torch import load_file, save_file


def bit_patterns():
    every_16 = torch.arange(-2**15, 2**15, dtype=torch.int32).to(torch.int16)
    some_64 = torch.tensor([0, -2**63, 1, -1, 2**63 - 1, 0x7ff8000000000001, 0x7ff0000000000000])
    some_32 = torch.tensor([0, -2**31, 1, -1, 2**31 - 1, 0x7fc00001, 0x7f800000], dtype=torch.int32)
    tensors = {
        "float16": every_16.view(torch.float16),
        "bfloat16": every_16.view(torch.bfloat16),
        "float32": some_32.view(torch.float32),
        "float64": some_64.view(torch.float64),
        "int64": some_64,
        "bool": torch.tensor([True, False, False, True, True]),
    }
    # A tensor without dimensions of each, and of a shape with several.
    for name, tensor in list(tensors.items()):
        tensors[name + ".scalar"] = tensor[1].clone()
        tensors[name + ".empty"] = tensor[:0].reshape(0, 2).clone()
    tensors["bfloat16.matrix"] = tensors["bfloat16"].reshape(256, 2, 128).clone()
    return tensors


def bits(tensor):
    return tensor.contiguous().flatten().view(torch.uint8)


def main():
    command, path = sys.argv[1:]
    if command == "write":
        save_file({name: tensor.clone() for name, tensor in bit_patterns().items()}, path)
        return
    found, expected = load_file(path), bit_patterns()
    assert found.keys() == expected.keys(), found.keys() ^ expected.keys()
    for name, tensor in expected.items():
        assert found[name].dtype == tensor.dtype, (name, found[name].dtype)
        assert found[name].shape == tensor.shape, (name, found[name].shape)
        assert torch.equal(bits(found[name]), bits(tensor)), name
    print(f"{len(expected)} tensors")


if __name__ == "__main__":
    main()
