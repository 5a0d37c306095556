"""verify and diff, held against numpy and torch."""

import json
import pathlib
import tempfile
import unittest

import gguf
import numpy
import torch
from safetensors.torch import load_file, save_file

import packings
from common import every_dtype, loadline, raw
from test_packings import missing


class Compare(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        print(f"torch {torch.__version__}, numpy {numpy.__version__}")

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def verify(self, a, b, *flags, code):
        return json.loads(loadline("verify", self.folder / a, self.folder / b, "--json", *flags, code=code))

    def test_every_dtype_says_what_numpy_says(self):
        a, generator = every_dtype(), torch.Generator().manual_seed(9)
        a.pop("complex128", None)
        b, flipped = {}, {}
        for name, tensor in a.items():
            data = bytearray(raw(tensor))
            for at in torch.randint(0, max(len(data), 1), (3,), generator=generator).tolist():
                if data and tensor.dtype != torch.bool:
                    data[at] ^= 0x41
            b[name] = torch.frombuffer(data, dtype=torch.uint8).view(tensor.dtype).reshape(tensor.shape) if data else tensor.clone()
            size = tensor.element_size()
            before = raw(tensor)
            flipped[name] = [i // size for i in range(0, len(data), size) if before[i:i + size] != bytes(data[i:i + size])]
        save_file(a, self.folder / "a.safetensors")
        save_file(b, self.folder / "b.safetensors")
        told = self.verify("a.safetensors", "b.safetensors", code=4)
        rows = {row["a"]["name"]: row["values"] for row in told["differences"]}
        self.assertEqual(set(rows), {name for name, places in flipped.items() if places})
        for name, places in flipped.items():
            if not places:
                continue
            with self.subTest(name):
                row = rows[name]
                self.assertEqual((row["first"], row["differing"], row["total"]), (places[0], len(places), a[name].numel()))
                if a[name].is_complex():
                    continue
                for side, model in (("a", a), ("b", b)):
                    value = model[name].flatten()[places[0]]
                    self.assertEqual(float(row[side]), float(value.double())) if not torch.isnan(value.double()) else self.assertEqual(row[side][-3:], "nan")

    def test_tolerance_is_isclose(self):
        generator = torch.Generator().manual_seed(4)
        a = torch.randn(40_000, generator=generator)
        b = a + torch.randn(40_000, generator=generator) * 1e-3
        a[:8] = torch.tensor([numpy.nan, numpy.nan, numpy.inf, -numpy.inf, numpy.inf, 0.0, 1.0, -0.0])
        b[:8] = torch.tensor([numpy.nan, 1.0, numpy.inf, numpy.inf, 3e38, -0.0, numpy.inf, 1e-9])
        for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.float64):
            save_file({"x": a}, self.folder / "a.safetensors")
            save_file({"x": b.to(dtype)}, self.folder / "b.safetensors")
            x, y = a.double().numpy(), b.to(dtype).double().numpy()
            for absolute, relative in ((0, 0), (1e-3, 0), (0, 1e-2), (5e-4, 1e-3)):
                with numpy.errstate(all="ignore"):
                    gap, size = numpy.abs(x - y), numpy.maximum(numpy.abs(x), numpy.abs(y))
                finite = numpy.isfinite(x) & numpy.isfinite(y)
                size[~finite] = 0
                close = (x == y) | (numpy.isnan(x) & numpy.isnan(y)) | (finite & ((gap <= absolute) | (gap <= relative * size)))
                row = self.verify("a.safetensors", "b.safetensors", "--tolerance", f"{absolute},{relative}", code=4)["differences"][0]["values"]
                wrong = numpy.flatnonzero(~close)
                self.assertEqual((row["differing"], row["first"]), (len(wrong), wrong[0]))
                wrong = wrong[finite[wrong]]
                self.assertEqual(row["max_absolute"], gap[wrong].max())
                self.assertEqual(row["max_relative"], (gap[wrong] / size[wrong]).max())

    def test_packed_weights_against_what_their_library_gives(self):
        for name in ("gptq-4", "awq-4", "bitsandbytes-nf4-nested", "mlx-4"):
            if missing(name):
                continue
            with self.subTest(name):
                path, _, plain = packings.save(self.folder, name)
                loadline("convert", path, self.folder / f"{name}.safetensors", "--outtype", "f32")
                self.assertTrue(self.verify(path, f"{name}.safetensors", "--tolerance", "0", code=0)["same"])
                written = load_file(self.folder / f"{name}.safetensors")
                weight = next(iter(plain))
                written[weight].view(-1)[5] += 1
                save_file(written, self.folder / "changed.safetensors")
                row = self.verify(path, "changed.safetensors", "--tolerance", "0.5", code=4)["differences"]
                self.assertEqual([(entry["a"]["name"], entry["values"]["first"]) for entry in row], [(weight, 5)])

    def test_blocks_against_gguf_py(self):
        generator = numpy.random.default_rng(5)
        numbers = generator.standard_normal((8, 256)).astype(numpy.float32)
        for kind in (gguf.GGMLQuantizationType.Q8_0, gguf.GGMLQuantizationType.Q4_0, gguf.GGMLQuantizationType.Q5_1):
            blocks = gguf.quantize(numbers, kind)
            writer = gguf.GGUFWriter(str(self.folder / "m.gguf"), "llama")
            writer.add_tensor("w", blocks, raw_dtype=kind)
            writer.write_header_to_file()
            writer.write_kv_data_to_file()
            writer.write_tensors_to_file()
            writer.close()
            save_file({"w": torch.from_numpy(numbers)}, self.folder / "w.safetensors")
            gap = numpy.abs(gguf.dequantize(blocks, kind).astype(numpy.float64) - numbers)
            row = self.verify("m.gguf", "w.safetensors", "--tolerance", "0", code=4)["differences"][0]["values"]
            self.assertEqual((row["differing"], row["max_absolute"]), (int((gap > 0).sum()), gap.max()))
            self.assertTrue(self.verify("m.gguf", "w.safetensors", "--tolerance", str(gap.max()), code=0)["same"])

    def test_diff_says_what_gguf_py_reads(self):
        generator = numpy.random.default_rng(6)
        kinds = gguf.GGMLQuantizationType
        for name, wide, context in (("a", kinds.Q5_0, 4096), ("b", kinds.Q8_0, 8192)):
            writer = gguf.GGUFWriter(str(self.folder / f"{name}.gguf"), "llama")
            writer.add_context_length(context)
            writer.add_token_list([f"token {i}" if i != 60_000 else name for i in range(70_000)])
            for layer in range(6):
                kind = wide if layer in (0, 1, 5) else kinds.Q4_0
                numbers = generator.standard_normal((4, 64)).astype(numpy.float32)
                writer.add_tensor(f"blk.{layer}.w.weight", gguf.quantize(numbers, kind), raw_dtype=kind)
            writer.write_header_to_file()
            writer.write_kv_data_to_file()
            writer.write_tensors_to_file()
            writer.close()
        told = json.loads(loadline("diff", self.folder / "a.gguf", self.folder / "b.gguf", "--json", "--no-values", code=4))
        sides, fields = [], []
        for name in "ab":
            reader = gguf.GGUFReader(self.folder / f"{name}.gguf")
            sides.append({tensor.name: (tensor.tensor_type.name, int(tensor.n_bytes)) for tensor in reader.tensors})
            fields.append(reader.fields)
        for group in told["types"]:
            members = [name for name in sides[0] if int(name.split(".")[1]) in group["layers"]]
            self.assertEqual(group["count"], len(members))
            for side, key in zip(sides, "ab"):
                self.assertEqual({side[name][0] for name in members}, {group[key]})
                self.assertEqual(sum(side[name][1] for name in members), group[f"bytes_{key}"])
        self.assertEqual(sum(group["count"] for group in told["types"]), 6)
        self.assertEqual({row["key"]: row["a"] for row in told["metadata"]},
                         {"llama.context_length": "4096", "tokenizer.ggml.tokens": '70,000 strings, number 60000 is "a"'})
        self.assertEqual(fields[0]["tokenizer.ggml.tokens"].contents(60_000), "a")


if __name__ == "__main__":
    unittest.main()
