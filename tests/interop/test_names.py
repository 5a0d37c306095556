"""Names that other programs write, and names made to do harm: what we write, the format's own library reads."""

import importlib.metadata
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import gguf
import numpy
import onnx
import torch
from common import PROGRAM, inspect, loadline
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load_file, save_file

FOREIGN = ["plain", "/layers.0/Constant_output_0", "onnx::MatMul_12", "dense/kernel:0", "m/code/w", "archive/data.pkl", "x.npy",
           "with space", "\u00e9t\u00e9", "\U0001F4A9", "a'b", 'a"b', "10", "con", "encoder/layer_._0/bias"]
HOSTILE = ["", ".", "..", "../x", "a/../b", "a//b", "a/", "/", "C:\\x", "\\\\s\\x", "a\0b", "a\nb", "\x1b[31m", "\u202ee", "\ufeffa",
           "-rf", "%s%n", "a%2Fb", ".hidden", "n" * 64, "n" * 300, "n" * 65531, "n" * 65532, "n" * 65537]
FORMATS = {"safetensors": ".safetensors", "gguf": ".gguf", "torch": ".pt", "npz": ".npz", "npy": "", "ptd": ".ptd", "onnx": ".onnx"}


def read(kind, path):
    """Name and number of every tensor, by the format's own library; nothing where there is none in Python."""
    if kind == "safetensors":
        return {name: float(value.item()) for name, value in load_file(path).items()}
    if kind == "gguf":
        return {tensor.name: float(tensor.data.flatten()[0]) for tensor in gguf.GGUFReader(path).tensors}
    if kind == "torch":
        return {name: float(value.item()) for name, value in torch.load(path, weights_only=True).items()}
    if kind == "npz":
        with numpy.load(path) as arrays:
            return {name: float(arrays[name].item()) for name in arrays.files}
    if kind == "npy":
        files = {tensor["name"]: tensor["file"] for tensor in inspect(path)["tensors"]}
        return {name: float(numpy.load(pathlib.Path(path) / pathlib.Path(file).name).item()) for name, file in files.items()}
    if kind == "onnx":
        return {value.name: float(numpy_helper.to_array(value).item()) for value in onnx.load(path).graph.initializer}
    return None


class Names(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        print({name: importlib.metadata.version(name) for name in ("numpy", "torch", "safetensors", "gguf", "onnx")}, file=sys.stderr)
        listed = {row["id"] for row in json.loads(loadline("formats", "--json"))["exporters"]}
        assert listed == set(FORMATS), listed ^ set(FORMATS)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def source(self, kind, names):
        if kind != "onnx":
            save_file({name: numpy.array([i + 1], "f4") for i, name in enumerate(names)}, self.folder / "in.safetensors")
            return self.folder / "in.safetensors"
        weights = [numpy_helper.from_array(numpy.array([i + 1], "f4"), name) for i, name in enumerate(names)]
        graph = helper.make_graph([helper.make_node("Add", ["x", names[0]], ["y"])], "g",
                                  [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])], weights)
        onnx.save(helper.make_model(graph), self.folder / "in.onnx")
        return self.folder / "in.onnx"

    def convert(self, kind, names):
        """The output, or nothing if all of it is refused, by the dry run too and before anything is written."""
        source, out = self.source(kind, names), self.folder / f"out{FORMATS[kind]}"
        arguments = [PROGRAM, "convert", str(source), str(out), "--to", kind, "--force"]
        arguments += ["--names", "keep"] if kind == "gguf" else []
        dry = subprocess.run([*arguments, "--dry-run"], capture_output=True, text=True)
        done = subprocess.run([*arguments, "--verify"], capture_output=True, text=True)
        self.assertEqual(dry.returncode, done.returncode, (kind, names, done.stderr))
        self.assertIn(done.returncode, (0, 1), done.stderr)
        if done.returncode == 1:
            self.assertFalse(out.exists(), (kind, names))
            self.assertLess(len(done.stderr), 1200)
            return None
        loadline("verify", source, out)
        return out

    def agrees(self, kind, names):
        out = self.convert(kind, names)
        if out is None:
            return False
        found = read(kind, out)
        if found is not None:
            self.assertEqual(found, {name: i + 1.0 for i, name in enumerate(names)}, kind)
        shutil.rmtree(out) if out.is_dir() else out.unlink()
        return True

    def test_every_format(self):
        for kind in FORMATS:
            with self.subTest(kind):
                self.assertTrue(self.agrees(kind, FOREIGN), kind)
                taken = [name for name in HOSTILE if (kind != "onnx" or name) and self.agrees(kind, [name])]
                if taken:
                    self.assertTrue(self.agrees(kind, FOREIGN + taken), kind)
                print(kind, "takes", len(taken), "of", len(HOSTILE), file=sys.stderr)

    def test_ranks(self):
        for rank in (0, 1, 4, 5, 16, 17, 64, 65, 100):
            header = json.dumps({"a": {"dtype": "F32", "shape": [1] * rank, "data_offsets": [0, 4]}}).encode()
            header += b" " * (-len(header) % 8)
            source = self.folder / "r.safetensors"
            source.write_bytes(len(header).to_bytes(8, "little") + header + numpy.array([2], "f4").tobytes())
            for kind in ("torch", "npz", "npy", "gguf"):
                out = self.folder / f"r{rank}{FORMATS[kind]}"
                arguments = ["convert", source, out, "--to", kind] + (["--names", "keep"] if kind == "gguf" else [])
                done = subprocess.run([PROGRAM, *map(str, arguments), "--verify"], capture_output=True, text=True)
                if done.returncode == 0:
                    self.assertEqual(read(kind, out), {"a": 2.0}, (kind, rank))
                else:
                    self.assertTrue(rank > 4 and "rank" in done.stderr and not out.exists(), (kind, rank, done.stderr))

    def test_names_of_numpy(self):
        """Archives that numpy itself writes with such names."""
        names = [name for name in FOREIGN + HOSTILE if len(name) < 1000 and "\0" not in name and name != "x.npy"]
        numpy.savez(self.folder / "theirs.npz", **{name: numpy.array([i + 1], "f4") for i, name in enumerate(names)})
        self.assertEqual([tensor["name"] for tensor in inspect(self.folder / "theirs.npz")["tensors"]], names)


if __name__ == "__main__":
    unittest.main()
