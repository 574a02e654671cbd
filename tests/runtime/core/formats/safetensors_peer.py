"""Python's safetensors as the other side of the test:
    python safetensors_peer.py write PATH
    python safetensors_peer.py check PATH
    python safetensors_peer.py rewrite_checkpoint PATH      makes PATH.python
    python safetensors_peer.py check_checkpoint PATH
The values are those of `examples()` in examples.h; a checkpoint has "tied" too, which is
"transposed".
"""

import json
import re
import sys

import torch
import xxhash
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


def checksum_of(path):
    """Where the digits are, those that stand there, and those of the content."""
    data = open(path, "rb").read()
    given = re.search(rb'"checksum":"([0-9a-f]{16})"', data)
    zeroed = data[:given.start(1)] + b"0" * 16 + data[given.end(1):]
    return given.start(1), given[1].decode(), xxhash.xxh3_64_hexdigest(zeroed)


def rewrite_checkpoint(path):
    with safe_open(path, "pt") as file:
        metadata = file.metadata()
    new = path + ".python"
    save_file(load_file(path), new, metadata)
    place, _, digits = checksum_of(new)
    with open(new, "r+b") as file:
        file.seek(place)
        file.write(digits.encode())


def check_checkpoint(path):
    _, given, found = checksum_of(path)
    assert given == found, (given, found)
    with safe_open(path, "pt") as file:
        metadata = file.metadata()
    assert metadata["format"] == "stepop-1", metadata
    assert metadata["config"] == "a: 1\n", metadata
    assert json.loads(metadata["progress"])["global_step"] == 3, metadata
    assert json.loads(metadata["aliases"]) == {"model.turned": "model.tied"}, metadata
    tensors = load_file(path)
    tensors |= {name: tensors[first] for name, first in json.loads(metadata["aliases"]).items()}
    tied = examples()["transposed"]
    check(tensors, examples() | {"model.tied": tied, "model.turned": tied})


def check(found, expected):
    assert found.keys() == expected.keys(), found.keys() ^ expected.keys()
    for name, value in expected.items():
        assert found[name].dtype == value.dtype, (name, found[name].dtype)
        assert found[name].shape == value.shape, (name, found[name].shape)
        assert torch.equal(found[name], value), (name, found[name], value)


def main():
    command, path = sys.argv[1:]
    if command == "write":
        save_file(examples(), path, METADATA)
    elif command == "rewrite_checkpoint":
        rewrite_checkpoint(path)
    elif command == "check_checkpoint":
        check_checkpoint(path)
    else:
        with safe_open(path, "pt") as file:
            assert file.metadata() == METADATA, file.metadata()
        check(load_file(path), examples())


if __name__ == "__main__":
    main()
