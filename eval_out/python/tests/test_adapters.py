"""Adapters of peft on a network of transformers, trained by stepop: models/README.md, "Adapters (LoRA)". Where both are installed."""
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np

from tests import files

NETWORK = """
import peft
import torch
import transformers


class Adapted(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        base = transformers.GPT2LMHeadModel(transformers.GPT2Config(
            n_layer=2, n_embd=32, n_head=2, vocab_size=50, n_positions=32, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0))
        self.model = peft.get_peft_model(base, peft.LoraConfig(r=4, target_modules=["c_attn"], fan_in_fan_out=True))

    def forward(self, tokens):
        return self.model(input_ids=tokens, use_cache=False).logits.transpose(1, 2)
"""
CONFIG = """
iterator: Classifier
model: {class: Exported, path: adapted.pt2}
input: tokens
target: next
optimizer: {class: AdamW, lr: 1e-2, weight_decay: 0}
datasets: {train: {class: Npy, files: {tokens: tokens.npy, next: next.npy}}}
batch_size: 64
num_epochs: 10
log_freq: 1
"""


@unittest.skipUnless(all(map(importlib.util.find_spec, ("peft", "transformers"))), "peft or transformers is not installed")
class AdaptersTest(unittest.TestCase):
    def test_adapters_are_trained_alone_and_read_back_by_peft(self):
        import peft
        import torch

        import stepop
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            sys.path.insert(0, str(folder))
            self.addCleanup(sys.path.remove, str(folder))
            (folder / "adapted.py").write_text(NETWORK)
            (folder / "adapted.yaml").write_text(CONFIG)
            begin = np.random.default_rng(0).integers(0, 50, (64, 1))
            rows = (begin + np.arange(17)) % 50
            np.save(folder / "tokens.npy", rows[:, :-1])
            np.save(folder / "next.npy", rows[:, 1:])
            started = {"cwd": folder, "check": True, "capture_output": True,
                       "env": {**os.environ, "PYTHONPATH": str(files.TREE / "eval_out" / "python")}}
            subprocess.run([sys.executable, "-m", "stepop.eval.export", "adapted.py:Adapted", "--example", "tokens=4,16:int64",
                            "-o", "adapted.pt2"], **started)
            subprocess.run([sys.executable, "-m", "stepop", "-n", "a", "-b", "adapted.yaml", "-t"], **started)
            run = stepop.Run(next((folder / "logs").iterdir()))
            from adapted import Adapted
            net = Adapted()
            before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
            trained = {name.removeprefix("model."): torch.as_tensor(value) for name, value in run.weights().items()}
            net.load_state_dict(trained)
            changed = {name for name, tensor in net.state_dict().items() if not torch.equal(tensor, before[name])}
            self.assertTrue(changed)
            self.assertEqual([name for name in changed if "lora_" not in name], [])

            # The same ten steps in Python.
            python = Adapted()
            optimizer = torch.optim.AdamW([p for p in python.parameters() if p.requires_grad], lr=1e-2, weight_decay=0)
            losses = []
            for _ in range(10):
                loss = torch.nn.functional.cross_entropy(python(torch.as_tensor(rows[:, :-1])), torch.as_tensor(rows[:, 1:]))
                losses.append(loss.item())
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            np.testing.assert_allclose(run.metrics["train/log_op/loss"].dropna(), losses, rtol=1e-4)

            net.model.save_pretrained(folder / "adapter")
            self.assertEqual(json.loads((folder / "adapter/adapter_config.json").read_text())["r"], 4)
            again = peft.PeftModel.from_pretrained(Adapted().model.unload(), folder / "adapter")
            tokens = torch.as_tensor(rows[:4, :-1])
            with torch.no_grad():
                torch.testing.assert_close(again(input_ids=tokens).logits.transpose(1, 2), net.eval()(tokens))


if __name__ == "__main__":
    unittest.main()
