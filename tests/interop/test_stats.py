"""What `inspect --stats` says of values equals what torch, numpy and gguf-py make of the same files."""

import json
import math
import os
import pathlib
import subprocess
import tempfile
import unittest

import gguf
import numpy
import torch
from gguf import quants
from safetensors.torch import save_file

PROGRAM = os.environ["LOADLINE"]


def stats(path, *arguments):
    done = subprocess.run([PROGRAM, "inspect", str(path), "--stats", "--json", *arguments], capture_output=True, text=True)
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return {row["name"]: row for row in json.loads(done.stdout)["stats"]}


def octaves(values):
    """[octave, negatives, positives] of the finite values that are not zero, by numpy's frexp."""
    counts = {}
    for sign, column in ((-1, 0), (1, 1)):
        some = numpy.abs(values[numpy.sign(values) == sign])
        exponents = numpy.clip(numpy.frexp(some)[1] - 1, -127, 127)
        for exponent, count in zip(*numpy.unique(exponents, return_counts=True)):
            counts.setdefault(int(exponent), [0, 0])[column] = int(count)
    return [[exponent, *pair] for exponent, pair in sorted(counts.items())]


def one_bit(blocks):
    """Q1_0, which gguf-py writes but does not read: an f16, then 128 bits, lowest first."""
    blocks = blocks.reshape(-1, 18)
    scale = blocks[:, :2].copy().view(numpy.float16).astype(numpy.float32)
    return numpy.where(numpy.unpackbits(blocks[:, 2:], axis=1, bitorder="little"), scale, -scale)


class Stats(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)

    def assert_measured(self, name, values, found):
        """`values`: float64 of the same numbers; `found`: a row of inspect."""
        values = values.reshape(-1)
        finite = values[numpy.isfinite(values)]
        self.assertEqual(found["count"], values.size, name)
        self.assertEqual(found["zeros"], int((values == 0).sum()), name)
        self.assertEqual(found["nans"], int(numpy.isnan(values).sum()), name)
        self.assertEqual(found["infs"], int(numpy.isinf(values).sum()), name)
        groups = values[: values.size // 4 * 4].reshape(-1, 4)
        self.assertEqual(found["groups"], len(groups), name)
        self.assertEqual(found["sparse_groups"], int(((groups == 0).sum(axis=1) >= 2).sum()), name)
        self.assertEqual(found["histogram"], octaves(finite), name)
        if finite.size == 0:
            self.assertIsNone(found["min"], name)
            return
        self.assertEqual(found["min"], finite.min(), name)
        self.assertEqual(found["max"], finite.max(), name)
        tolerance = 1e-11 * float(numpy.abs(finite).max())
        self.assertTrue(math.isclose(found["mean"], math.fsum(finite) / finite.size, abs_tol=tolerance), name)
        self.assertTrue(math.isclose(found["std"], float(finite.std()), abs_tol=tolerance), name)

    def test_every_type_that_torch_has(self):
        generator = torch.Generator().manual_seed(5)
        floats = [torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2,
                  torch.float8_e4m3fnuz, torch.float8_e5m2fnuz, torch.float8_e8m0fnu]
        integers = [torch.int8, torch.uint8, torch.int16, torch.uint16, torch.int32, torch.uint32, torch.bool]
        tensors = {}
        for dtype in floats + integers:
            most = 2 if dtype == torch.bool else 256
            bits = torch.randint(0, most, (1003, 17, dtype.itemsize), dtype=torch.uint8, generator=generator)
            bits[torch.rand(1003, 17, generator=generator) < 0.4] = 0
            tensors[str(dtype)] = bits.view(dtype).reshape(1003, 17)
        tensors["weights"] = torch.randn(400, 999, generator=generator).to(torch.bfloat16) * 0.02
        tensors["double"] = torch.randn(70_001, dtype=torch.float64, generator=generator) * 1e40
        tensors["empty"] = torch.zeros(0, 3)
        tensors["scalar"] = torch.tensor(-0.0)
        # as float64, which numpy has, through float32, which holds them all
        expected = {name: (tensor if tensor.dtype in (torch.float64, torch.int32, torch.uint32) else tensor.to(torch.float32))
                    .to(torch.float64).numpy() for name, tensor in tensors.items()}
        save_file(tensors, self.path / "all.safetensors")
        found = stats(self.path / "all.safetensors")
        self.assertEqual(set(found), set(tensors))
        for name, values in expected.items():
            self.assert_measured(name, values, found[name])

    def test_complex_numbers_count_twice(self):
        tensor = torch.randn(501, dtype=torch.complex64, generator=torch.Generator().manual_seed(1))
        save_file({"c": tensor}, self.path / "c.safetensors")
        values = torch.view_as_real(tensor).numpy().astype(numpy.float64)
        self.assert_measured("c", values, stats(self.path / "c.safetensors")["c"])

    def test_integers_of_64_bits_keep_them_all(self):
        tensors = {"i64": torch.tensor([-(2**63), 2**63 - 1, 5]), "u64": torch.tensor([2**64 - 1, 7], dtype=torch.uint64)}
        save_file(tensors, self.path / "wide.safetensors")
        found = stats(self.path / "wide.safetensors")
        self.assertEqual((found["i64"]["min"], found["i64"]["max"]), (-(2**63), 2**63 - 1))
        self.assertEqual((found["u64"]["min"], found["u64"]["max"]), (7, 2**64 - 1))

    def test_blocks_as_gguf_py_reads_them(self):
        random = numpy.random.default_rng(9)
        writer = gguf.GGUFWriter(self.path / "m.gguf", "llama")
        expected = {}
        for kind, (elements, size) in gguf.GGML_QUANT_SIZES.items():
            if elements == 1 or kind.name in ("Q8_1", "Q8_K"):
                continue
            # random scales are NaN here and there, and infinite
            blocks = random.integers(0, 256, (50, 3 * size), dtype=numpy.uint8)
            blocks[random.random((50, 3 * size)) < 0.1] = 0
            writer.add_tensor(kind.name, blocks, raw_dtype=kind)
            with numpy.errstate(all="ignore"):
                values = one_bit(blocks) if kind.name == "Q1_0" else quants.dequantize(blocks, kind)
                expected[kind.name] = values.astype(numpy.float64)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        found = stats(self.path / "m.gguf")
        self.assertGreater(len(expected), 22)
        for name, values in expected.items():
            self.assert_measured(name, values, found[name])

    def test_pruned_weights(self):
        tensor = torch.randn(64, 64, generator=torch.Generator().manual_seed(2))
        keep = torch.zeros(64, 16, 4, dtype=torch.bool)
        keep[..., :2] = True
        save_file({"sparse": tensor * keep.reshape(64, 64), "dense": tensor}, self.path / "p.safetensors")
        found = stats(self.path / "p.safetensors")
        self.assertEqual(found["sparse"]["sparse_groups"], found["sparse"]["groups"])
        self.assertEqual(found["dense"]["sparse_groups"], 0)


if __name__ == "__main__":
    unittest.main()
