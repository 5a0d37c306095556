"""Quantized blocks equal those of ggml's ports bit by bit: libgguf, llama.cpp, and gguf-py where it has the quantizer.

LOADLINE_QUANTIZED_BLOCKS says how many random blocks of each type are compared (a million takes ten minutes).
"""

import importlib.metadata
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

import gguf
import numpy
from safetensors.numpy import save_file

import llama

try:
    import libgguf
except ImportError:
    libgguf = None

TOOL = pathlib.Path(os.environ["LOADLINE"]).parent / "tests" / "run_quantizer"
BLOCKS = int(os.environ.get("LOADLINE_QUANTIZED_BLOCKS", 10000))
COLUMNS = 2048
MOST_ROWS = 8192  # compared at once
# name: ggml's number, numbers of a block, bytes of a block
TYPES = {"q4_0": (2, 32, 18), "q4_1": (3, 32, 20), "q5_0": (6, 32, 22), "q5_1": (7, 32, 24), "q8_0": (8, 32, 34),
         "q2_k": (10, 256, 84), "q3_k": (11, 256, 110), "q4_k": (12, 256, 144), "q5_k": (13, 256, 176), "q6_k": (14, 256, 210),
         "iq4_nl": (20, 32, 18), "iq4_xs": (23, 256, 136), "tq2_0": (35, 256, 66), "mxfp4": (39, 32, 17), "nvfp4": (40, 64, 36)}
IGNORE_IMPORTANCE = {"q8_0", "tq2_0", "mxfp4", "nvfp4"}
DISTRIBUTIONS = (lambda g, shape: g.standard_normal(shape, numpy.float32),
                 lambda g, shape: g.random(shape, numpy.float32) * 2 - 1,
                 lambda g, shape: g.standard_exponential(shape, numpy.float32) * numpy.where(g.random(shape) < 0.5, -1, 1),
                 lambda g, shape: g.standard_t(2, shape),
                 lambda g, shape: g.random(shape, numpy.float32) ** 3)
MAGNITUDES = (1e-30, 1e-12, 1e-6, 1e-3, 1, 10, 1e4, 1e9, 1e30)


def random_rows(generator, count):
    """Rows of every distribution and magnitude in turn."""
    kinds = [(d, m) for d in DISTRIBUTIONS for m in MAGNITUDES]
    rows = numpy.empty((count, COLUMNS), numpy.float32)
    for i, (distribution, magnitude) in enumerate(kinds):
        part = rows[i::len(kinds)]
        part[:] = (distribution(generator, part.shape) * magnitude).astype(numpy.float32)
    return rows


def adversarial_rows(generator):
    normal = lambda: generator.standard_normal(COLUMNS)
    rows = [numpy.full(COLUMNS, value) for value in (0.0, -0.0, 1.0, -1.0, 1e-45, 3e38, numpy.inf, -numpy.inf)]
    rows += [normal() * scale for scale in (1e-44, 1e-41, 1e-38, 1e-20, 1e18, 1e20, 5e37)]
    for outlier in (1.0, 1e4, -1e6, 1e30, -1e30, 1e-30, numpy.inf, -numpy.inf):
        for others in (normal() * 1e-3, numpy.zeros(COLUMNS), -1e-6 * numpy.abs(normal())):
            others[5::97] = outlier
            rows.append(others)
    both = normal()
    both[7::200], both[9::300] = numpy.inf, -numpy.inf
    signs = generator.random(COLUMNS) < 0.5
    bits = generator.integers(0, 1 << 32, COLUMNS, numpy.uint32).view(numpy.float32)
    rows += [both, numpy.round(normal() * 4), numpy.sign(normal()), numpy.where(signs, 0.0, -0.0), numpy.maximum(normal(), 0),
             numpy.minimum(normal(), 0), numpy.abs(normal()) + 5, -numpy.abs(normal()) - 5, numpy.where(numpy.isnan(bits), 0, bits)]
    with numpy.errstate(over="ignore"):
        return numpy.array(rows).astype(numpy.float32)


class Quantizers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if libgguf is None:
            raise unittest.SkipTest("not installed: libgguf")
        if not TOOL.exists():
            raise unittest.SkipTest("run_quantizer is not built")
        versions = [f"{name} {importlib.metadata.version(name)}" for name in ("libgguf", "gguf")]
        print(", ".join(versions), f"- {BLOCKS} random blocks of each type", file=sys.stderr)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def ours(self, name, rows, importance=None):
        rows.tofile(self.folder / "rows")
        command = [TOOL, name, str(COLUMNS), self.folder / "rows", self.folder / "blocks"]
        if importance is not None:
            importance.tofile(self.folder / "importance")
            command.append(self.folder / "importance")
        subprocess.run(command, check=True)
        return numpy.fromfile(self.folder / "blocks", numpy.uint8).reshape(-1, TYPES[name][2])

    def assert_blocks(self, name, rows, theirs, ours, what):
        wrong = numpy.flatnonzero((ours != theirs.reshape(ours.shape)).any(1))
        if len(wrong):
            each = TYPES[name][1]
            at = wrong[0]
            self.fail(f"{name}, {what}: {len(wrong)} of {len(ours)} blocks differ, first {at}: {rows.reshape(-1, each)[at]}\n"
                      f"{ours[at].tobytes().hex()}\n{theirs.reshape(ours.shape)[at].tobytes().hex()}")

    def importances(self, generator, name):
        """None, and weights as activations give them: far apart, some of them 0, nearly all of them 0."""
        far = (generator.random(COLUMNS) ** 8 * 1e3).astype(numpy.float32)
        holes = numpy.where(generator.random(COLUMNS) < 0.3, 0, generator.random(COLUMNS)).astype(numpy.float32)
        few = numpy.where(generator.random(COLUMNS) < 0.9, 0, generator.random(COLUMNS)).astype(numpy.float32)
        return [("plain", None)] + ([] if name in IGNORE_IMPORTANCE else [("far apart", far), ("with zeros", holes), ("nearly all zero", few)])

    def check(self, name):
        generator = numpy.random.default_rng(1)
        each = TYPES[name][1]
        rows_left = -(-BLOCKS * each // COLUMNS)
        sets = [("adversarial", adversarial_rows(generator))]
        compared = 0
        while sets or rows_left:
            if not sets:
                sets.append(("random", random_rows(generator, min(rows_left, MOST_ROWS))))
                rows_left -= len(sets[0][1])
            kind, rows = sets.pop()
            for label, importance in self.importances(generator, name):
                ours = self.ours(name, rows, importance)
                self.assert_blocks(name, rows, libgguf.quantize_rows(rows, TYPES[name][0], imatrix=importance), ours,
                                   f"{kind} rows, importance: {label}")
                compared += len(ours)
        print(f"{name}: {compared} blocks, 0 differing bytes", file=sys.stderr)

    def test_importance_matrices(self):
        """Both forms of the file, as libgguf reads them."""
        generator = numpy.random.default_rng(5)
        rows, sums = generator.standard_normal((4, COLUMNS), numpy.float32), generator.random(COLUMNS, numpy.float32)
        new, old = self.folder / "new.gguf", self.folder / "old.dat"
        writer = gguf.GGUFWriter(new, "none")
        writer.kv_data[0].clear()  # a model's architecture
        writer.add_string("general.type", "imatrix")
        writer.add_array("imatrix.datasets", ["some.txt"])
        writer.add_uint32("imatrix.chunk_count", 3)
        writer.add_tensor("other.in_sum2", numpy.ones((2, 5), numpy.float32))
        writer.add_tensor("other.counts", numpy.ones((2, 1), numpy.float32))
        writer.add_tensor("w.in_sum2", sums)
        writer.add_tensor("w.counts", numpy.array([7], numpy.float32))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        old.write_bytes(struct.pack("<ii1sii", 1, 1, b"w", 7, COLUMNS) + sums.tobytes() + struct.pack("<ii8s", 3, 8, b"some.txt"))
        rows.tofile(self.folder / "rows")
        for path in (new, old):
            importance = libgguf.load_imatrix(path)["w"]
            for name in ("q4_k", "iq4_nl", "q5_0"):
                subprocess.run([TOOL, name, str(COLUMNS), self.folder / "rows", self.folder / "blocks", path, "w"], check=True)
                ours = numpy.fromfile(self.folder / "blocks", numpy.uint8).reshape(-1, TYPES[name][2])
                self.assert_blocks(name, rows, libgguf.quantize_rows(rows, TYPES[name][0], imatrix=importance), ours, path.name)

    def test_a_step_of_a_recipe(self):
        """Rows that come in parts, of a type that is widened first."""
        recipes = TOOL.with_name("run_recipe")
        if not recipes.exists():
            self.skipTest("run_recipe is not built")
        generator = numpy.random.default_rng(4)
        rows = generator.standard_normal((3, 70 * COLUMNS), numpy.float32).astype(numpy.float16)
        importance = generator.random(rows.shape[1]).astype(numpy.float32)
        save_file({"w": rows}, self.folder / "m.safetensors")
        for name in ("q4_0", "q5_1", "q4_k", "iq4_xs"):
            for weights in (None, importance):
                step = {"kind": "quantize", "inputs": [0], "dtype": name}
                if weights is not None:
                    step["importance"] = weights.tolist()
                (self.folder / "recipe.json").write_text(json.dumps([{"kind": "take", "name": "w"}, step]))
                subprocess.run([recipes, self.folder / "m.safetensors", self.folder / "recipe.json", self.folder / "blocks", "0", "100000"],
                               check=True)
                ours = numpy.fromfile(self.folder / "blocks", numpy.uint8).reshape(-1, TYPES[name][2])
                wide = rows.astype(numpy.float32)
                self.assert_blocks(name, wide, libgguf.quantize_rows(wide, TYPES[name][0], imatrix=weights), ours, "a recipe")

    def test_llama_cpp(self):
        """The same from the library that most people run."""
        if llama.library() is None:
            self.skipTest("not installed: xllamacpp, llama-cpp-py-sync")
        generator = numpy.random.default_rng(2)
        rows = random_rows(generator, 90)
        hard = adversarial_rows(generator)
        for name, (number, each, size) in TYPES.items():
            for label, importance in self.importances(generator, name):
                # an outlier with hardly any weight: newer versions bound a level before they round it, older ones after
                both = numpy.concatenate([rows, hard]) if importance is None else rows
                theirs = llama.quantize(number, both, COLUMNS // each * size, importance)
                self.assert_blocks(name, both, theirs, self.ours(name, both, importance), f"llama.cpp, importance: {label}")

    def test_gguf_py(self):
        """It multiplies and adds in one rounding for Q4_0 and Q5_0, so that only the other types are alike."""
        generator = numpy.random.default_rng(3)
        rows = generator.standard_normal((90, COLUMNS), numpy.float32)
        for name in ("q8_0", "q4_1", "q5_1", "tq2_0"):
            theirs = gguf.quants.quantize(rows, gguf.GGMLQuantizationType(TYPES[name][0]))
            self.assert_blocks(name, rows, theirs, self.ours(name, rows), "gguf-py")
        for name, (number, each, _) in TYPES.items():
            with self.subTest(name):
                ours = self.ours(name, rows)
                try:
                    back = gguf.quants.dequantize(ours, gguf.GGMLQuantizationType(number))
                except (ValueError, NotImplementedError):
                    continue  # this version does not read the type
                distance = numpy.abs(back.reshape(-1, each) - rows.reshape(-1, each)).max(1)
                self.assertLess((distance / numpy.abs(rows.reshape(-1, each)).max(1)).max(), 0.6)


for _name in TYPES:
    setattr(Quantizers, f"test_{_name}", lambda self, name=_name: self.check(name))


if __name__ == "__main__":
    unittest.main()
