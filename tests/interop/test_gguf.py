"""GGUF files that gguf-py wrote, against what gguf-py's reader says."""

import json
import pathlib
import re
import tempfile
import unittest

import gguf
import llama
import numpy

from common import inspect, loadline

Types = gguf.GGMLQuantizationType
Values = gguf.GGUFValueType
NAMES = {Values.UINT8: "u8", Values.INT8: "i8", Values.UINT16: "u16", Values.INT16: "i16", Values.UINT32: "u32",
         Values.INT32: "i32", Values.UINT64: "u64", Values.INT64: "i64", Values.FLOAT32: "f32", Values.FLOAT64: "f64",
         Values.BOOL: "bool", Values.STRING: "string"}


def reader_tensors(path):
    return {tensor.name: tensor for tensor in gguf.GGUFReader(path).tensors}


class Gguf(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)

    def assert_same(self, path, swapped=False):
        """Every tensor: shape, type and bytes as the reader has them."""
        ours = {tensor["name"]: tensor for tensor in inspect(path)["tensors"]}
        theirs = reader_tensors(path)
        self.assertEqual(set(ours), set(theirs))
        raw = pathlib.Path(path).read_bytes()
        for name, tensor in theirs.items():
            self.assertEqual(ours[name]["shape"], [int(n) for n in reversed(tensor.shape)], name)
            self.assertEqual(ours[name]["dtype"], tensor.tensor_type.name, name)
            self.assertEqual(ours[name]["bytes"], tensor.n_bytes, name)
            if not swapped:
                begin = ours[name]["offset"]
                self.assertEqual(raw[begin : begin + tensor.n_bytes], tensor.data.tobytes(), name)
        return ours

    def metadata(self, path):
        rows = json.loads(loadline("inspect", path, "--metadata", "--json"))["metadata"]
        return {row["key"]: row for row in rows}

    def write(self, name, add, **options):
        writer = gguf.GGUFWriter(str(self.path / name), "llama", **options)
        add(writer)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return self.path / name

    def every_metadata_type(self, writer):
        writer.add_uint8("u8", 200)
        writer.add_int8("i8", -3)
        writer.add_uint16("u16", 60000)
        writer.add_int16("i16", -300)
        writer.add_uint32("u32", 4_000_000_000)
        writer.add_int32("i32", -70000)
        writer.add_uint64("u64", 2**64 - 1)
        writer.add_int64("i64", -(2**63))
        writer.add_float32("f32", 0.5)
        writer.add_float64("f64", 0.1)
        writer.add_bool("bool", True)
        writer.add_string("string", "\u2581the \"end\"")
        writer.add_array("strings", ["a", "", "\u00e9"])
        writer.add_array("numbers", [1, 2, 3])
        writer.add_array("floats", [0.5, -1.5])

    def test_every_metadata_type(self):
        def add(writer):
            self.every_metadata_type(writer)
            writer.add_tensor("w", numpy.arange(12, dtype=numpy.float32).reshape(3, 4))

        for endian in (gguf.GGUFEndian.LITTLE, gguf.GGUFEndian.BIG):
            path = self.write(f"{endian.name}.gguf", add, endianess=endian)
            ours = self.metadata(path)
            fields = {name: field for name, field in gguf.GGUFReader(path).fields.items() if not name.startswith("GGUF.")}
            self.assertEqual(set(ours), set(fields))
            for name, field in fields.items():
                row = ours[name]
                kind = field.types[0]
                if kind == gguf.GGUFValueType.ARRAY:
                    self.assertEqual(row["type"], "array", name)
                    self.assertEqual(row["value"]["count"], len(field.data), name)
                    self.assertEqual(row["value"]["elements"], field.contents(), name)
                else:
                    self.assertEqual(row["type"], NAMES[kind], name)
                    self.assertEqual(row["value"], field.contents(), name)

    def test_every_tensor_type(self):
        random = numpy.random.default_rng(1)

        def add(writer):
            for dtype in (numpy.float32, numpy.float16, numpy.float64, numpy.int8, numpy.int16, numpy.int32, numpy.int64):
                writer.add_tensor(f"plain.{numpy.dtype(dtype).name}", (random.random((2, 3, 5)) * 100).astype(dtype))
            for kind in Types:
                block, size = gguf.GGML_QUANT_SIZES[kind]
                # Q8_1 never lies in files; the package takes it for 40 bytes, ggml itself for 36
                if block == 1 or kind == Types.Q8_1:
                    continue
                rows = random.integers(0, 255, (3, 2 * size), dtype=numpy.uint8)
                writer.add_tensor(f"blocks.{kind.name}", rows, raw_dtype=kind)

        self.assertGreater(len(self.assert_same(self.write("all.gguf", add))), 25)

    def test_big_endian_values(self):
        values = {"f4": numpy.float32([[1.5, -2.0]]), "f2": numpy.float16([0.25, 3.0, -4.0]), "i8": numpy.int64([-5, 2**40])}

        def add(writer):
            for name, value in values.items():
                writer.add_tensor(name, value)

        path = self.write("big.gguf", add, endianess=gguf.GGUFEndian.BIG)
        self.assert_same(path, swapped=True)
        out = self.path / "little.gguf"
        loadline("convert", path, out)
        for name, tensor in reader_tensors(out).items():
            self.assertEqual(tensor.data.tobytes(), values[name].tobytes(), name)

    def assert_same_keys(self, source, out, but=()):
        theirs, ours = gguf.GGUFReader(source), gguf.GGUFReader(out)
        self.assertEqual(list(ours.fields), list(theirs.fields))
        for name, field in theirs.fields.items():
            self.assertEqual(ours.fields[name].types, field.types, name)
            if name not in but:
                self.assertEqual(ours.fields[name].contents(), field.contents(), name)
        return ours

    def test_conversion_keeps_every_key(self):
        def add(writer):
            self.every_metadata_type(writer)
            writer.add_file_type(0)
            writer.add_custom_alignment(64)
            writer.add_token_list([f"token {i}" for i in range(50_000)])
            writer.add_token_scores([i / 7 for i in range(50_000)])
            writer.add_token_types([i % 6 for i in range(50_000)])
            writer.add_string("long", "x" * (2 << 20))
            writer.add_array("flags", [True, False, True])
            writer.add_tensor("w", numpy.arange(12, dtype=numpy.float32).reshape(3, 4))
            writer.add_tensor("v", numpy.arange(5, dtype=numpy.float16))

        for endian in (gguf.GGUFEndian.LITTLE, gguf.GGUFEndian.BIG):
            source = self.write(f"{endian.name}.gguf", add, endianess=endian)
            out = self.path / f"{endian.name}-out.gguf"
            loadline("convert", source, out, "--verify")
            # the reader shows its own header as fields too, and there is one that differs: the byte order
            ours = self.assert_same_keys(source, out, but=("GGUF.version",))
            self.assertEqual(ours.alignment, 64)
            self.assertEqual(numpy.array(ours.get_tensor(0).data).tolist(), numpy.arange(12).reshape(3, 4).tolist())
            half = self.path / f"{endian.name}-half.gguf"
            loadline("convert", source, half, "--outtype", "f16")
            ours = self.assert_same_keys(source, half, but=("GGUF.version", "general.file_type"))
            self.assertEqual(ours.fields["general.file_type"].contents(), 1)

    def test_custom_alignment(self):
        def add(writer):
            writer.add_custom_alignment(4096)
            writer.add_tensor("a", numpy.ones(3, dtype=numpy.float32))
            writer.add_tensor("b", numpy.ones(5, dtype=numpy.float16))

        for tensor in self.assert_same(self.write("aligned.gguf", add)).values():
            self.assertEqual(tensor["offset"] % 4096, 0)

    def test_split_set(self):
        writer = gguf.GGUFWriter(str(self.path / "model.gguf"), "llama", split_max_tensors=2)
        writer.add_string("general.name", "split")
        for i in range(5):
            writer.add_tensor(f"t{i}", numpy.full((4, 8), i, dtype=numpy.float32))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        parts = sorted(self.path.glob("*.gguf"))
        self.assertEqual(len(parts), 3)
        for part in parts:
            model = inspect(part)
            self.assertEqual({tensor["name"] for tensor in model["tensors"]}, {f"t{i}" for i in range(5)})
            self.assertEqual(model["notes"], [])
            self.assertEqual(len(model["files"]), 3)
        by_file = {}
        for tensor in inspect(parts[1])["tensors"]:
            by_file.setdefault(tensor["file"], {})[tensor["name"]] = tensor
        for part in parts:
            for name, tensor in reader_tensors(part).items():
                ours = by_file[part.name][name]
                begin = ours["offset"]
                self.assertEqual(part.read_bytes()[begin : begin + ours["bytes"]], tensor.data.tobytes())
        parts[1].unlink()
        self.assertEqual(inspect(parts[0])["notes"][0]["severity"], "error")

    def test_two_models_of_parts_in_a_folder(self):
        """One of them opens whole, and a note names the other."""
        for name in ("a-Q4", "b-Q8"):
            for i in range(2):
                def add(writer, i=i):
                    for key, add_key, value in (("split.no", writer.add_uint16, i), ("split.count", writer.add_uint16, 2), ("split.tensors.count", writer.add_int32, 2)):
                        add_key(key, value)
                    writer.add_tensor(f"{name}.{i}", numpy.zeros((2, 32), numpy.float32))
                path = self.write(f"{name}-0000{i + 1}-of-00002.gguf", add)
        model = inspect(path.parent)
        self.assertEqual([tensor["name"] for tensor in model["tensors"]], ["a-Q4.0", "a-Q4.1"])
        self.assertTrue(any("b-Q8-00001-of-00002.gguf" in note["text"] for note in model["notes"]), model["notes"])

    def small_llama(self, name, changed):
        """A file that llama.cpp opens, but for keys: name -> (how it is added, its value), or None to leave it out."""
        keys = {"llama.block_count": ("uint32", 1), "llama.context_length": ("uint32", 32), "llama.embedding_length": ("uint32", 32),
                "llama.feed_forward_length": ("uint32", 32), "llama.attention.head_count": ("uint32", 2),
                "llama.attention.layer_norm_rms_epsilon": ("float32", 1e-5), "llama.rope.freq_base": ("float32", 1e4),
                "tokenizer.ggml.model": ("string", "llama"), "tokenizer.ggml.tokens": ("array", ["<unk>", *(f"t{i}" for i in range(9))]),
                "tokenizer.ggml.scores": ("array", [0.5] * 10), "tokenizer.ggml.token_type": ("array", [2] + [1] * 9), **changed}

        def add(writer):
            for key, value in keys.items():
                if value is not None:
                    getattr(writer, "add_" + value[0])(key, *value[1:])
            square = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
            for tensor, shape in {"token_embd": (10, 32), "output_norm": (32,), "blk.0.attn_norm": (32,), "blk.0.ffn_norm": (32,),
                                  **{"blk.0." + part: (32, 32) for part in square}}.items():
                writer.add_tensor(tensor + ".weight", numpy.zeros(shape, numpy.float32))

        return self.write(name, add)

    @unittest.skipIf(llama.library() is None, "xllamacpp and llama-cpp-py-sync are not installed")
    def test_ways_to_cut_texts_that_llama_cpp_knows(self):
        """Each of our list, and some that it does not know."""
        listed = (pathlib.Path(__file__).parents[2] / "importers" / "gguf" / "gguf.cpp").read_text().partition("kCuts[] = {")[2].partition("}")[0]
        known, others = re.findall('"([^"]+)"', listed), ["bert-bge", "jina-v2-en", "Qwen2", "gpt2", "unknown"]
        self.assertGreater(len(known), 80)
        c, ffi = llama.library()
        how = c.llama_model_default_params()
        how.vocab_only = True
        for cut in [*known, *others]:
            path = self.small_llama("cut.gguf", {"tokenizer.ggml.model": ("string", "gpt2"), "tokenizer.ggml.pre": ("string", cut),
                                                 "tokenizer.ggml.merges": ("array", ["t 1"])})
            model = c.llama_model_load_from_file(str(path).encode(), how)
            with self.subTest(cut):
                self.assertEqual(model != ffi.NULL, cut in known)
            if model != ffi.NULL:
                c.llama_model_free(model)

    @unittest.skipIf(llama.library() is None, "xllamacpp and llama-cpp-py-sync are not installed")
    def test_what_llama_cpp_refuses_is_noted(self):
        merging = lambda kind, **cut: {"tokenizer.ggml.model": ("string", kind), "tokenizer.ggml.merges": ("array", ["t 1"]),
                                       **{"tokenizer.ggml." + key: ("string", value) for key, value in cut.items()}}
        cases = {"as it is": {}, "merges": merging("gpt2"), "cut as Qwen's": merging("gpt2", pre="qwen2"), "not cut": merging("gpt2", pre=""),
                 "by a name, unused": merging("llama", pre="nobody"), "more scores": {"tokenizer.ggml.scores": ("array", [0.5] * 12)}, "whole scores": {"tokenizer.ggml.scores": ("array", [1] * 10)}}
        refused = {"u64": {"llama.context_length": ("uint64", 32)}, "i32": {"llama.block_count": ("int32", 1)},
                   "f64": {"llama.rope.freq_base": ("float64", 1e4)}, "heads": {"llama.attention.head_count": ("uint16", 2)},
                   "epsilon": {"llama.attention.layer_norm_rms_epsilon": ("float64", 1e-5)},
                   "few scores": {"tokenizer.ggml.scores": ("array", [0.5] * 4)},
                   "another cut": merging("gpt2", pre="nobody"), "another kind": merging("nobody"),
                   "no kind": {"tokenizer.ggml.model": None}, "a number for a kind": {"tokenizer.ggml.model": ("uint32", 1)},
                   "no tokens": dict.fromkeys(("tokenizer.ggml.tokens", "tokenizer.ggml.scores", "tokenizer.ggml.token_type")),
                   "few kinds": {"tokenizer.ggml.token_type": ("array", [1] * 4)},
                   "real kinds": {"tokenizer.ggml.token_type": ("array", [1.0] * 10)},
                   "more tokens": {"tokenizer.ggml.tokens": ("array", ["<unk>", *(f"t{i}" for i in range(19))]),
                                   "tokenizer.ggml.scores": ("array", [0.5] * 20), "tokenizer.ggml.token_type": ("array", [1] * 20)}}
        for name, changed in {**cases, **refused}.items():
            with self.subTest(name):
                path = self.small_llama("small.gguf", changed)
                notes = [note["text"] for note in inspect(path)["notes"]]
                self.assertEqual(any("llama.cpp refuses" in note for note in notes), name in refused, notes)
                try:
                    loaded = llama.logits(path, [1, 2]) is not None
                except RuntimeError:
                    loaded = False
                self.assertEqual(loaded, name in cases)


if __name__ == "__main__":
    unittest.main()
