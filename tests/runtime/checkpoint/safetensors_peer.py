"""Python's safetensors as the other side of the test:
    python safetensors_peer.py write PATH
    python safetensors_peer.py check PATH
The values are those of `examples()` in safetensors_test.cpp.
"""

import sys

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

TYPES = {
    "F32": torch.float32, "F64": torch.float64, "F16": torch.float16, "BF16": torch.bfloat16,
    "I8": torch.int8, "I16": torch.int16, "I32": torch.int32, "I64": torch.int64, "U8": torch.uint8,
    "BOOL": torch.bool,
}
METADATA = {"format": "pt", "note": 'a "quoted"\nline, \u00fcber'}


def examples():
    tensors = {}
    for name, dtype in TYPES.items():
        tensors[f"{name}.matrix"] = torch.arange(-3, 4).abs().to(dtype)[None].repeat(2, 1)
        tensors[f"{name}.number"] = torch.tensor(1).to(dtype)
        tensors[f"{name}.empty"] = torch.zeros((0, 3), dtype=dtype)
    tensors["\u00fcber/\"x\""] = torch.tensor([0.1, -1e30, float("inf")])
    tensors["transposed"] = torch.arange(6, dtype=torch.float32).reshape(2, 3).t().contiguous()
    return tensors


def main():
    command, path = sys.argv[1:]
    if command == "write":
        save_file(examples(), path, METADATA)
        return
    with safe_open(path, "pt") as file:
        assert file.metadata() == METADATA, file.metadata()
    found, expected = load_file(path), examples()
    assert found.keys() == expected.keys(), found.keys() ^ expected.keys()
    for name, value in expected.items():
        assert found[name].dtype == value.dtype, (name, found[name].dtype)
        assert found[name].shape == value.shape, (name, found[name].shape)
        assert torch.equal(found[name], value), (name, found[name], value)


if __name__ == "__main__":
    main()
