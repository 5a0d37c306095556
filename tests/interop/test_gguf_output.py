"""GGUF files and split sets that we write, as llama.cpp and gguf-py read them."""

import pathlib
import sys
import tempfile
import unittest

import gguf
import llama
import numpy
from common import inspect, loadline

sys.path.append(str(pathlib.Path(__file__).parent / "loads"))
import ggufs  # noqa: E402

TOKENS = [1, 300, 301, 17, 400, 5]


def tensors_of(path):
    return {tensor.name: (tensor.tensor_type, tuple(tensor.shape), tensor.data.tobytes()) for tensor in gguf.GGUFReader(path).tensors}


def keys_of(path):
    return {name: (field.types, field.contents()) for name, field in gguf.GGUFReader(path).fields.items()
            if not name.startswith("GGUF.")}


class GgufOutput(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def model(self, kind="f32"):
        return pathlib.Path(ggufs.make(self.folder, f"gguf-untied.{kind}", tiny=True)) / "model.gguf"

    def assert_runs_alike(self, a, b):
        if llama.library() is None:
            self.skipTest("xllamacpp is not installed")
        expected = llama.logits(a, TOKENS)
        self.assertGreater(float(numpy.abs(expected).max()), 0)
        numpy.testing.assert_array_equal(llama.logits(b, TOKENS), expected)

    def test_split_sets(self):
        for kind in ("f32", "q4_k_m"):
            for align in ((), ("--align", "4096")):
                with self.subTest(kind=kind, align=align):
                    source, out = self.model(kind), self.folder / f"{kind}{len(align)}.gguf"
                    loadline("convert", source, out, "--max-shard-size", "250KB", *align)
                    parts = sorted(self.folder.glob(f"{out.stem}-*.gguf"))
                    self.assertGreater(len(parts), 2)
                    together = {}
                    for number, part in enumerate(parts):
                        self.assertEqual(part.name, f"{out.stem}-{number + 1:05}-of-{len(parts):05}.gguf")
                        self.assertTrue(part.stat().st_size <= 250_000 or len(tensors_of(part)) == 1)
                        reader = gguf.GGUFReader(part)
                        self.assertEqual(reader.alignment, 4096 if align else 32)
                        told = {name: (reader.fields[name].types[0], reader.fields[name].contents())
                                for name in ("split.no", "split.count", "split.tensors.count")}
                        Types = gguf.GGUFValueType
                        self.assertEqual(told, {"split.no": (Types.UINT16, number), "split.count": (Types.UINT16, len(parts)),
                                                "split.tensors.count": (Types.INT32, len(tensors_of(source)))})
                        together |= tensors_of(part)
                    self.assertEqual(together, tensors_of(source))
                    self.assertEqual(inspect(parts[1])["notes"], [])
                    self.assert_runs_alike(source, parts[0])

    def test_a_split_set_becomes_one_file(self):
        source = self.model()
        writer = gguf.GGUFReader(source)
        theirs = gguf.GGUFWriter(str(self.folder / "theirs.gguf"), "llama", split_max_tensors=5)
        for name, field in writer.fields.items():
            if name.startswith("GGUF.") or name == "general.architecture":
                continue
            kind = field.types[0]
            theirs.add_key_value(name, field.contents(), kind, field.types[1] if kind == gguf.GGUFValueType.ARRAY else None)
        for tensor in writer.tensors:
            theirs.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
        theirs.write_header_to_file()
        theirs.write_kv_data_to_file()
        theirs.write_tensors_to_file()
        theirs.close()
        parts = sorted(self.folder.glob("theirs-*.gguf"))
        self.assertGreater(len(parts), 2)
        loadline("convert", parts[1], self.folder / "joined.gguf")
        self.assertEqual(tensors_of(self.folder / "joined.gguf"), tensors_of(source))
        self.assertEqual(keys_of(self.folder / "joined.gguf"), keys_of(source))
        self.assert_runs_alike(parts[0], self.folder / "joined.gguf")

    def test_orders(self):
        source = self.model("q4_k_m")
        for order in ("largest", "forward", "heads_first", "optimal", "name"):
            out = self.folder / f"{order}.gguf"
            loadline("convert", source, out, "--order", order)
            self.assertEqual(tensors_of(out), tensors_of(source))
            names = list(tensors_of(out))
            if order == "name":
                self.assertEqual(names, sorted(names))
            self.assert_runs_alike(source, out)

    def test_slack(self):
        source = self.model()
        for slack in ("1B", "4KiB", "1MiB"):
            out = self.folder / f"{slack}.gguf"
            loadline("convert", source, out, "--metadata-slack", slack)
            keys = keys_of(out)
            self.assertEqual(set(keys.pop("loadline.slack")[1]), {" "})
            self.assertEqual(keys, keys_of(source))
            self.assertEqual(tensors_of(out), tensors_of(source))
            self.assert_runs_alike(source, out)
        # what an edit in place does: a key is added, the slack gives its bytes, and no tensor moves
        out = self.folder / "4KiB.gguf"
        data = bytearray(out.read_bytes())
        key = b"loadline.slack"
        at = data.index(len(key).to_bytes(8, "little") + key)
        added = b"".join((len(text).to_bytes(8, "little") + text if kind is None else kind.to_bytes(4, "little"))
                         for text, kind in ((b"general.author", None), (b"", 8), (b"somebody", None)))
        length = at + 8 + len(key) + 4
        slack = int.from_bytes(data[length : length + 8], "little") - len(added)
        data[length : length + 8] = slack.to_bytes(8, "little")
        end = length + 8 + slack
        data[end : end + len(added)] = added
        data[16:24] = (int.from_bytes(data[16:24], "little") + 1).to_bytes(8, "little")
        edited = self.folder / "edited.gguf"
        edited.write_bytes(data)
        self.assertEqual(keys_of(edited)["general.author"][1], "somebody")
        self.assertEqual(tensors_of(edited), tensors_of(source))
        self.assert_runs_alike(source, edited)


if __name__ == "__main__":
    unittest.main()
