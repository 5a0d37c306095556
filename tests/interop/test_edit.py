"""Edited files, as gguf-py and safetensors read them."""

import hashlib
import importlib.metadata
import json
import pathlib
import tempfile
import unittest

import gguf
import numpy
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from common import every_dtype, loadline, raw


def tensor_bytes(path):
    return {tensor.name: (tensor.tensor_type, tensor.shape.tolist(), hashlib.sha256(tensor.data.tobytes()).hexdigest())
            for tensor in gguf.GGUFReader(path).tensors}


class Edit(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        print(f"gguf {importlib.metadata.version('gguf')}, safetensors {importlib.metadata.version('safetensors')}")

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write_gguf(self, alignment):
        path, generator = self.folder / "m.gguf", numpy.random.default_rng(1)
        writer = gguf.GGUFWriter(str(path), "llama")
        if alignment != 32:
            writer.add_custom_alignment(alignment)
        writer.add_name("An old name")
        writer.add_context_length(4096)
        writer.add_rope_freq_base(10000.0)
        writer.add_token_list([f"token {i}" for i in range(500)])
        writer.add_token_scores([0.5 * i for i in range(500)])
        writer.add_add_bos_token(True)
        for name in ("blk.0.w", "blk.1.w"):
            numbers = generator.standard_normal((4, 64)).astype(numpy.float32)
            writer.add_tensor(name, gguf.quantize(numbers, gguf.GGMLQuantizationType.Q8_0), raw_dtype=gguf.GGMLQuantizationType.Q8_0)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return path

    def test_gguf_py_reads_every_edit(self):
        for alignment in (32, 64, 4096):
            with self.subTest(alignment):
                path = self.write_gguf(alignment)
                size, tensors = path.stat().st_size, tensor_bytes(path)
                wanted = {field.name: field.contents() for field in gguf.GGUFReader(path).fields.values()}
                edits = [
                    (["--set", "general.name=Short"], {"general.name": "Short"}),
                    (["--set", "llama.context_length=131072"], {"llama.context_length": 131072}),
                    (["--set", "llama.rope.freq_base=5e5", "--set", "tokenizer.ggml.add_bos_token=false"],
                     {"llama.rope.freq_base": 5e5, "tokenizer.ggml.add_bos_token": False}),
                    (["--set", f"tokenizer.ggml.tokens={json.dumps([f'T{i}' for i in range(500)])}"],
                     {"tokenizer.ggml.tokens": [f"T{i}" for i in range(500)]}),
                    (["--remove", "tokenizer.ggml.scores"], {"tokenizer.ggml.scores": None}),
                    (["--set", "my.list:i16[]=[-1,300]", "--set", "my.flags:bool[]=[true,false]", "--set", "my.text:string=späße",
                      "--set", "my.big:u64=18446744073709551615", "--set", "my.double:f64=0.1"],
                     {"my.list": [-1, 300], "my.flags": [True, False], "my.text": "späße", "my.big": 2**64 - 1, "my.double": 0.1}),
                    (["--set", f"general.description:string={'words ' * 300}"], {"general.description": "words " * 300}),
                ]
                for flags, change in edits:
                    loadline("edit", path, *flags)
                    wanted = {key: value for key, value in {**wanted, **change}.items() if value is not None}
                    reader = gguf.GGUFReader(path)
                    read = {field.name: field.contents() for field in reader.fields.values() if field.name != "loadline.slack"}
                    count = "GGUF.kv_count"
                    self.assertEqual({key: value for key, value in read.items() if key != count},
                                     {key: value for key, value in wanted.items() if key != count}, flags)
                    self.assertEqual(tensor_bytes(path), tensors)
                    self.assertEqual(path.stat().st_size, size)

    def test_safetensors_reads_every_edit(self):
        path, tensors = self.folder / "m.safetensors", every_dtype()
        tensors.pop("complex128", None)
        save_file(tensors, self.folder / "plain.safetensors", metadata={"format": "pt", "author": "ä \" \\ \u0001"})
        loadline("convert", self.folder / "plain.safetensors", path, "--align", "4096")
        size = path.stat().st_size
        wanted = {"format": "pt", "author": "ä \" \\ \u0001"}
        for flags, change in ((["--set", "author=x"], {"author": "x"}), (["--set", "a\"b=c\\d=\n", "--remove", "author"], {"a\"b": "c\\d=\n", "author": None}),
                              (["--set", f"long={'x' * 200}"], {"long": "x" * 200}), (["--remove", "long"], {"long": None})):
            loadline("edit", path, *flags)
            wanted = {key: value for key, value in {**wanted, **change}.items() if value is not None}
            with safe_open(path, framework="pt") as opened:
                self.assertEqual(opened.metadata(), wanted)
                for name in opened.keys():
                    tensor = opened.get_tensor(name)
                    self.assertEqual((tensor.dtype, tensor.shape, raw(tensor)), (tensors[name].dtype, tensors[name].shape, raw(tensors[name])))
            self.assertEqual(path.stat().st_size, size)


if __name__ == "__main__":
    unittest.main()
