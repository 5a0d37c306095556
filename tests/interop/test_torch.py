"""Checkpoints of torch.save, numpy archives and torch.export archives, tensor by tensor against their own readers."""

import collections
import json
import pathlib
import pickle
import struct
import tempfile
import unittest
import warnings

import numpy
import torch
from safetensors.torch import load_file

from common import every_dtype, inspect, loadline, raw

NAMES = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.float64: "F64", torch.int8: "I8",
         torch.int16: "I16", torch.int32: "I32", torch.int64: "I64", torch.uint8: "U8", torch.uint16: "U16",
         torch.uint32: "U32", torch.uint64: "U64", torch.bool: "BOOL", torch.complex64: "C64", torch.complex128: "C128",
         torch.float8_e4m3fn: "F8_E4M3", torch.float8_e5m2: "F8_E5M2", torch.float8_e4m3fnuz: "F8_E4M3FNUZ",
         torch.float8_e5m2fnuz: "F8_E5M2FNUZ", torch.float8_e8m0fnu: "F8_E8M0"}


def views():
    """Tensors that share storages in every way torch saves."""
    base = torch.arange(120.0).reshape(10, 12)
    block = torch.randint(0, 255, (3, 5, 7, 2), dtype=torch.int16)
    return {"base": base, "tied": base, "alias": base.view(10, 12), "transposed": base.t(), "rows": base[4:7],
            "columns": base[:, 2:5], "every other": base[::2, ::3], "expanded": base[0].expand(6, 12),
            "one column": base[:, 3], "element": base[3, 4], "block": block, "permuted": block.permute(3, 1, 0, 2),
            "channels last": torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last), "empty": base[:0],
            "half": base.half()[1:, 1:], "complex": torch.randn(4, 6, dtype=torch.complex64).t()}


def flatten(value, name=""):
    """A checkpoint's tensors by path, as Loadline names them."""
    if isinstance(value, torch.Tensor):
        return {name or "tensor": value.detach()}
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, (list, tuple)):
        items = enumerate(value)
    else:
        return {}
    tensors = {}
    for key, item in items:
        tensors.update(flatten(item, f"{name}.{key}" if name else str(key)))
    return tensors


class Formats(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)
        torch.manual_seed(5)

    def assert_opens(self, path, expected, convert=True):
        """Names, dtypes, shapes and strides as the writer has them, and the same bytes: in the file and converted."""
        answer = inspect(path)
        found = {tensor["name"]: tensor for tensor in answer["tensors"]}
        self.assertEqual(set(expected), set(found))
        folder = path if path.is_dir() else path.parent
        for name, tensor in expected.items():
            row = found[name]
            self.assertEqual(NAMES[tensor.dtype], row["dtype"], name)
            self.assertEqual(list(tensor.shape), row["shape"], name)
            if tensor.numel() and not tensor.is_contiguous():
                self.assertEqual(list(tensor.stride()), row["strides"], name)
            elif "encoding" not in row:
                with open(folder / row["file"], "rb") as file:
                    file.seek(row["offset"])
                    self.assertEqual(raw(tensor), file.read(row["bytes"]), name)
        if convert:
            self.assert_converts(path, expected, answer["tied"])
        return answer

    def assert_converts(self, path, expected, tied):
        out = self.path / "converted.safetensors"
        loadline("convert", path, out, "--force", "--verify")
        written = load_file(out)
        kept = {name: group[0] for group in tied for name in group}
        self.assertEqual({kept.get(name, name) for name in expected}, set(written))
        for name, tensor in expected.items():
            copy = written[kept.get(name, name)]
            self.assertEqual((tensor.dtype, tensor.shape), (copy.dtype, copy.shape), name)
            self.assertEqual(raw(tensor), raw(copy), name)

    def save(self, value, name="model.pt", **options):
        torch.save(value, self.path / name, **options)
        return self.path / name


class Torch(Formats):
    def both(self, value, expected=None, **options):
        """Saved as a zip and as a legacy stream; what torch.load gives is what is expected."""
        for zipped in (True, False):
            path = self.save(value, "zip.pt" if zipped else "legacy.pt", _use_new_zipfile_serialization=zipped)
            loaded = torch.load(path, weights_only=True) if expected is None else expected
            answer = self.assert_opens(path, flatten(loaded), **options)
            self.assertEqual("torch" if zipped else "torch_legacy", answer["format"])
            self.assertEqual([], [note for note in answer["notes"] if note["severity"] == "error"])

    def test_every_dtype(self):
        # torch.load itself refuses untyped storages in legacy files with weights_only
        tensors = every_dtype()
        self.both(tensors, expected=tensors)

    def test_complex128_opens(self):
        # safetensors has no such type
        self.both({"c": torch.randn(3, dtype=torch.complex128)}, convert=False)

    def test_views_and_ties(self):
        self.both(views())
        groups = [sorted(group) for group in inspect(self.path / "zip.pt")["tied"]]
        self.assertIn(["alias", "base", "tied"], groups)

    def test_modules_parameters_and_optimizers(self):
        class Tied(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.embed = torch.nn.Embedding(20, 8)
                self.block = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.BatchNorm1d(8))
                self.head = torch.nn.Linear(8, 20, bias=False)
                self.head.weight = self.embed.weight

        model = Tied()
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        model.head(model.block(model.embed(torch.arange(6)))).sum().backward()
        optimizer.step()
        self.both(model.state_dict())
        self.assertEqual([["embed.weight", "head.weight"]], inspect(self.path / "zip.pt")["tied"])
        self.both({"parameter": torch.nn.Parameter(torch.randn(3)), "plain": torch.zeros(2)})
        self.both({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3, "note": "x",
                   "history": [torch.ones(2), (torch.zeros(1), None)]})

    def test_lists_and_single_tensors(self):
        self.both([torch.ones(2), torch.zeros(3)])
        self.both(torch.randn(4, 4).t())

    def test_checksums_left_out(self):
        from torch.utils.serialization import config
        config.save.compute_crc32 = False
        self.addCleanup(setattr, config.save, "compute_crc32", True)
        tensors = views()
        self.assert_opens(self.save(tensors), tensors)

    def test_alignment_of_a_page(self):
        from torch.utils.serialization import config
        before = config.save.storage_alignment
        self.addCleanup(setattr, config.save, "storage_alignment", before)
        config.save.storage_alignment = 4096
        tensors = every_dtype()
        answer = self.assert_opens(self.save(tensors), tensors)
        self.assertTrue(all(row["offset"] % 4096 == 0 for row in answer["tensors"] if row["bytes"]))

    def test_quantized_sparse_and_meta_tensors_show_what_they_hold(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            quantized = torch.quantize_per_channel(torch.randn(4, 3), torch.rand(4) + 0.1, torch.zeros(4, dtype=torch.int64), 0, torch.qint8)
            sparse = torch.eye(3).to_sparse()
            compressed = torch.eye(3).to_sparse_csr()
        path = self.save({"q": quantized, "s": sparse, "c": compressed, "m": torch.zeros(2, 3, device="meta")})
        found = {row["name"]: row for row in inspect(path)["tensors"]}
        self.assertEqual({"q", "q.scale", "q.zero_point", "s.indices", "s.values", "c.compressed_indices", "c.plain_indices",
                          "c.values", "m"}, set(found))
        for name, tensor in {"q": quantized.int_repr(), "q.scale": quantized.q_per_channel_scales(), "s.indices": sparse.indices(),
                             "s.values": sparse.values(), "c.compressed_indices": compressed.crow_indices()}.items():
            self.assertEqual(list(tensor.shape), found[name]["shape"], name)
            with open(path, "rb") as file:
                file.seek(found[name]["offset"])
                self.assertEqual(raw(tensor), file.read(found[name]["bytes"]), name)

    def test_quantized_tensors_become_their_numbers(self):
        """Each scheme and type over contiguous, channels-last and tied weights, against torch's own dequantize()."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            image = torch.randn(4, 3, 2, 5)
            tensors = {f"{dtype}".replace("torch.", ""): torch.quantize_per_tensor(torch.randn(3, 5), 0.1, zero, dtype)
                       for dtype, zero in ((torch.qint8, -7), (torch.quint8, 200), (torch.qint32, 1000))}
            for axis in range(4):
                count = image.shape[axis]
                tensors[f"axis.{axis}"] = torch.quantize_per_channel(image, torch.rand(count) / 10 + 0.01, torch.randint(-20, 20, (count,)),
                                                                     axis, torch.qint8)
            last = image.contiguous(memory_format=torch.channels_last)
            tensors["last"] = torch.quantize_per_channel(last, torch.rand(4) / 10 + 0.01, torch.randint(0, 9, (4,)), 0, torch.quint8)
            tensors["scalar"] = torch.quantize_per_tensor(torch.tensor(2.5), 0.5, 1, torch.qint8)
            tensors["plain"] = torch.randn(3)
            shards = self.path / "shards"
            shards.mkdir()
            for zipped in (True, False):
                path = self.save(tensors, f"{zipped}.pt", _use_new_zipfile_serialization=zipped)
                self.assert_dequantizes(path, torch.load(path, weights_only=True))
            items = list(tensors.items())
            for i in range(2):
                torch.save(dict(items[i::2]), shards / f"pytorch_model-0000{i + 1}-of-00002.bin")
            self.assert_dequantizes(shards, tensors)
            path = self.save({"f": torch.quantize_per_channel(torch.randn(4, 3), torch.rand(4), torch.rand(4), 0, torch.quint8)})
        self.assertIn("scales are not 4 numbers of type F64", loadline("convert", path, self.path / "f.safetensors", "--json", code=1))

    def test_the_index_decides_over_quantized_copies(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            plain = torch.randn(8, 4)
            copies = {"other scale": torch.quantize_per_tensor(plain * 3, 0.5, 3, torch.qint8), "plain": plain * 2}
            for name, copy in copies.items():
                for wanted in (0, 1):
                    with self.subTest(copy=name, wanted=wanted):
                        folder = self.path / f"{name}{wanted}"
                        folder.mkdir()
                        shards = [{"a": torch.ones(2), "w": torch.quantize_per_tensor(plain, 0.1, -7, torch.qint8)}, {"w": copy, "b": torch.ones(3)}]
                        files = [f"pytorch_model-0000{i + 1}-of-00002.bin" for i in range(2)]
                        for file, shard in zip(files, shards):
                            torch.save(shard, folder / file)
                        (folder / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": {"a": files[0], "b": files[1], "w": files[wanted]}}))
                        expected = {"a": shards[0]["a"], "b": shards[1]["b"], "w": shards[wanted]["w"]}
                        self.assert_dequantizes(folder, expected)

    def assert_dequantizes(self, path, tensors):
        expected = {name: tensor.dequantize() if tensor.is_quantized else tensor for name, tensor in tensors.items()}
        self.assertEqual(sum(tensor.numel() for tensor in expected.values()), inspect(path)["parameter_count"])
        for options in ((), ("--outtype", "f32")):
            out = self.path / "numbers.safetensors"
            loadline("convert", path, out, "--force", "--verify", *options)
            written = load_file(out)
            self.assertEqual(set(expected), set(written))
            for name, tensor in expected.items():
                self.assertEqual((tensor.dtype, tensor.shape), (written[name].dtype, written[name].shape), name)
                # torch rounds a product and a sum in one step where the processor can
                torch.testing.assert_close(written[name], tensor, rtol=1e-6, atol=1e-6, msg=name)

    def test_pickles_of_every_protocol(self):
        """What torch.load(weights_only=True) reads, and protocol 1, which needs weights_only=False there. The others are
        refused as there."""
        value = {"w": torch.arange(6.0).reshape(2, 3).t(), "b": torch.ones(2, dtype=torch.bfloat16), "large": 2**70, "wide": 2**40, "yes": True,
                 "deep": {"l": [torch.ones(1), (torch.zeros(1),)]}}
        for zipped in (True, False):
            for protocol in range(6):
                path = self.save(value, f"{protocol}.{zipped}.pt", pickle_protocol=protocol, _use_new_zipfile_serialization=zipped)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    try:
                        loaded = torch.load(path, weights_only=protocol != 1)
                    except pickle.UnpicklingError:
                        loaded = None
                self.assertEqual(protocol in (1, 2, 3), loaded is not None)
                if loaded is not None:
                    self.assert_opens(path, flatten(loaded))
                else:
                    error = json.loads(loadline("inspect", path, "--json", code=1))["error"]
                    self.assertEqual("unsupported", error["code"])
                    self.assertIn(f"protocol {protocol if protocol < 5 else 4}", error["message"].replace("protocol 5", "protocol 4"))

    def test_a_save_that_failed_says_so(self):
        numbers = torch.arange(8.0)
        with self.assertRaises(RuntimeError):
            self.save({"f": numbers, "i": numbers.view(torch.int32)})
        with self.assertRaises(RuntimeError):
            torch.load(self.path / "model.pt", weights_only=True)
        self.assertIn("has not finished", loadline("inspect", self.path / "model.pt", "--json", code=1))

    def test_views_that_are_no_bytes(self):
        """A number shown 2^42 times is one number in the file; a conjugated view is not what its bytes say."""
        path = self.save({"one": torch.ones(1).expand(1 << 30, 1 << 12), "a": torch.ones(3)})
        shapes = {tensor["name"]: tensor["shape"] for tensor in inspect(path)["tensors"]}
        self.assertEqual(shapes, {"one": [1 << 30, 1 << 12], "a": [3]})
        path = self.save({"c": torch.tensor([1 + 2j, 3 - 4j]).conj(), "a": torch.ones(3)})
        self.assertEqual([note["severity"] for note in inspect(path)["notes"]], ["error"])
        loadline("convert", path, path.with_name("c.safetensors"), code=1)

    def test_names_that_are_a_tensor_and_a_dict(self):
        one, two = torch.ones(2), torch.zeros(3)
        self.both({"a": one, "a.b": two})
        path = self.save({"a": {"b": one}, "a.b": two})
        self.assertIn("'a.b'", loadline("inspect", path, "--json", code=1))

    def test_float4_counts_numbers(self):
        packed = torch.arange(8, dtype=torch.uint8).reshape(2, 4)
        row = inspect(self.save({"w": packed.view(torch.float4_e2m1fn_x2)}))["tensors"][0]
        self.assertEqual(("F4", [2, 8], 8), (row["dtype"], row["shape"], row["bytes"]))

    def test_big_endian_files(self):
        tensors = {"f": torch.randn(3, 5), "t": torch.randn(4, 6, dtype=torch.float64).t(), "c": torch.randn(3, dtype=torch.complex64),
                   "i": torch.arange(7, dtype=torch.int16), "b": torch.tensor([1, 2, 3], dtype=torch.uint8)}
        swapped = {}
        for name, tensor in tensors.items():
            storage = tensor.clone().untyped_storage()
            storage.byteswap(tensor.dtype)
            swapped[name] = torch.empty(0, dtype=tensor.dtype).set_(storage, 0, tensor.shape, tensor.stride())
        path = self.save(swapped)
        path.write_bytes(self.as_big_endian(path.read_bytes()))
        loaded = torch.load(path, weights_only=True)
        for name, tensor in tensors.items():
            self.assertTrue(torch.equal(tensor, loaded[name]), name)
        answer = inspect(path)
        self.assert_converts(path, tensors, answer["tied"])

    @staticmethod
    def as_big_endian(data):
        """The record "byteorder" says big. Both words stand with their length and checksum in three headers, so the
        archive is written anew, in its own order, stored."""
        import io
        import zipfile
        out = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
            for info in old.infolist():
                new.writestr(info.filename, b"big" if info.filename.endswith("/byteorder") else old.read(info))
        return out.getvalue()

    def test_shards_through_an_index(self):
        model = {f"layers.{i}.weight": torch.randn(8, 8) for i in range(6)}
        shards = {f"pytorch_model-{i + 1:05}-of-00003.bin": dict(list(model.items())[2 * i:2 * i + 2]) for i in range(3)}
        for zipped in (True, False):
            folder = self.path / f"zipped {zipped}"
            folder.mkdir()
            for name, tensors in shards.items():
                torch.save(tensors, folder / name, _use_new_zipfile_serialization=zipped)
            index = {"metadata": {"total_size": sum(t.numel() * 4 for t in model.values())},
                     "weight_map": {key: name for name, tensors in shards.items() for key in tensors}}
            (folder / "pytorch_model.bin.index.json").write_text(json.dumps(index))
            (folder / "config.json").write_text('{"model_type": "unheard of"}')
            torch.save({"state": torch.ones(1)}, folder / "optimizer.pt")
            answer = self.assert_opens(folder, model)
            self.assertEqual([], answer["notes"])
            shard = inspect(folder / "pytorch_model-00002-of-00003.bin")
            self.assertEqual(6, shard["tensor_count"])

    def test_more_than_2_31_elements_in_a_file_of_holes(self):
        """torch.save of a small model whose storage is then said to be 6 GiB: zip64 sizes over a hole."""
        numel = 3 * 2**30 + 5
        path = self.path / "huge.pt"
        small = self.save({"w": torch.zeros(7, dtype=torch.bfloat16), "last": torch.tensor([3.0])})
        write_with_hole(small, path, numel)
        self.assertLess(path.stat().st_blocks * 512, 64 << 20)
        loaded = torch.load(path, mmap=True, weights_only=True)
        self.assertEqual(numel, loaded["w"].numel())
        found = {row["name"]: row for row in inspect(path)["tensors"]}
        self.assertEqual([numel], found["w"]["shape"])
        self.assertEqual(2 * numel, found["w"]["bytes"])
        self.assertGreater(found["last"]["offset"], 2**32)
        with open(path, "rb") as file:
            file.seek(found["w"]["offset"] + 2 * numel - 2)
            self.assertEqual(raw(loaded["w"][-1:]), file.read(2))
            file.seek(found["last"]["offset"])
            self.assertEqual(raw(loaded["last"]), file.read(4))

    def test_what_only_torch_can_read_is_refused_by_name(self):
        for value, part in ((torch.nn.Linear(2, 2), "torch.nn.modules.linear.Linear"),):
            for zipped in (True, False):
                path = self.save(value, _use_new_zipfile_serialization=zipped)
                error = json.loads(loadline("inspect", path, "--json", code=1))["error"]
                self.assertEqual("unsupported", error["code"])
                self.assertIn(part, error["message"])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), self.path / "script.pt")
        self.assertIn("TorchScript", loadline("inspect", self.path / "script.pt", "--json", code=1))


def write_with_hole(source, target, numel):
    """Copies a torch zip, giving data/0 `numel` bfloat16 elements: a hole that ends in 0x4040 (3.0)."""
    import zipfile
    entries = []
    with zipfile.ZipFile(source) as old, open(target, "wb") as out:
        for info in old.infolist():
            content = old.read(info)
            size = len(content)
            if info.filename.endswith("data.pkl"):
                content = content.replace(b"K\x07tq", b"\x8a\x05" + numel.to_bytes(5, "little") + b"tq", 1)  # storage
                content = content.replace(b"QK\x00K\x07\x85", b"QK\x00\x8a\x05" + numel.to_bytes(5, "little") + b"\x85", 1)  # size
                size = len(content)
            if info.filename.endswith("data/0"):
                content, size = b"", 2 * numel
            name = info.filename.encode()
            at = out.tell()
            wide = struct.pack("<HHQQ", 1, 16, size, size)
            out.write(struct.pack("<IHHHIIIIHH", 0x04034B50, 45, 0, 0, 0, 0, 0xFFFFFFFF, 0xFFFFFFFF, len(name), len(wide)) + name + wide)
            if content:
                out.write(content)
            else:
                out.seek(size - 2, 1)
                out.write(b"\x40\x40")
            entries.append((name, size, at))
        directory = out.tell()
        for name, size, at in entries:
            wide = struct.pack("<HHQQQ", 1, 24, size, size, at)
            out.write(struct.pack("<IHHHHIIIIHHHHHII", 0x02014B50, 45, 45, 0, 0, 0, 0, 0xFFFFFFFF, 0xFFFFFFFF, len(name), len(wide), 0, 0, 0, 0,
                                  0xFFFFFFFF) + name + wide)
        end = out.tell()
        out.write(struct.pack("<IQHHIIQQQQ", 0x06064B50, 44, 45, 45, 0, 0, len(entries), len(entries), end - directory, directory))
        out.write(struct.pack("<IIQI", 0x07064B50, 0, end, 1))
        out.write(struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0))


class Numpy(Formats):
    TYPES = ["b1", "u1", "i1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8"]

    def arrays(self):
        random = numpy.random.default_rng(4)
        arrays = {code: random.integers(0, 2 if code == "b1" else 100, (3, 4)).astype("<" + code) for code in self.TYPES}
        arrays["fortran"] = numpy.asfortranarray(random.random((3, 4, 5)))
        arrays["scalar"] = numpy.array(2.5)
        arrays["empty"] = numpy.zeros((0, 3), dtype="f4")
        arrays["vector"] = numpy.arange(5, dtype="i4")
        return arrays

    @staticmethod
    def tensors(arrays):
        # strides as they are: torch keeps numpy's
        return {name: torch.from_numpy(numpy.asarray(array, dtype=array.dtype.newbyteorder("<"))) for name, array in arrays.items()}

    def test_npy(self):
        for name, array in self.arrays().items():
            path = self.path / f"{name}.npy"
            numpy.save(path, array)
            self.assert_opens(path, self.tensors({name: numpy.load(path)}))

    def test_big_endian(self):
        for code in self.TYPES[3:]:
            path = self.path / f"{code}.npy"
            numpy.save(path, numpy.arange(24).reshape(4, 6).astype(">" + code))
            read = numpy.load(path)
            tensor = torch.from_numpy(read.astype(read.dtype.newbyteorder("<")))
            self.assert_converts(path, {code: tensor}, [])

    def test_npz_stored_and_compressed(self):
        arrays = self.arrays()
        for save in (numpy.savez, numpy.savez_compressed):
            save(self.path / "m.npz", **arrays)
            with numpy.load(self.path / "m.npz") as read:
                self.assert_opens(self.path / "m.npz", self.tensors({name: read[name] for name in read.files}))

    def test_a_large_compressed_array(self):
        array = numpy.asfortranarray(numpy.random.default_rng(1).random((700, 900)).astype("f4"))
        numpy.savez_compressed(self.path / "m.npz", array=array)
        self.assert_opens(self.path / "m.npz", self.tensors({"array": array}))

    def test_other_types_are_bytes(self):
        numpy.savez(self.path / "m.npz", text=numpy.array(["ab", "c"]), record=numpy.zeros(2, dtype=[("a", "f4"), ("b", "i8", (2,))]),
                    dates=numpy.array(["2020-01-01"], dtype="M8[D]"), objects=numpy.array([None, 1], dtype=object))
        answer = inspect(self.path / "m.npz")
        self.assertEqual({"OPAQUE"}, {row["dtype"] for row in answer["tensors"]})
        self.assertEqual(4, len(answer["notes"]))


class Export(Formats):
    def test_weights_ties_views_and_constants(self):
        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.first = torch.nn.Linear(4, 3)
                self.second = torch.nn.Linear(4, 3)
                self.second.weight = self.first.weight
                self.register_buffer("transposed", torch.arange(12.0).reshape(3, 4).t())
                self.register_buffer("loose", torch.ones(2), persistent=False)
                self.small = torch.nn.Parameter(torch.randn(5).bfloat16())
                self.constant = torch.ones(3) * 2

            def forward(self, x):
                return self.first(x) + self.second(x) + self.transposed.sum() + self.loose.sum() + self.constant + self.small.sum()

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program = torch.export.export(Model(), (torch.randn(2, 4),))
            torch.export.save(program, self.path / "m.pt2")
            loaded = torch.export.load(self.path / "m.pt2")
        expected = {name: tensor.detach() for name, tensor in {**loaded.state_dict, **loaded.constants}.items()}
        answer = self.assert_opens(self.path / "m.pt2", expected)
        self.assertEqual([["first.weight", "second.weight"]], answer["tied"])
        self.assertIn("the exported graph is not read", answer["notes"][0]["text"])

    def test_state_dicts_inside_the_archive(self):
        """The layout of early torch.export, which this torch still reads and no longer writes."""
        import io
        import zipfile
        tensors = views()
        buffer = io.BytesIO()
        torch.save(tensors, buffer)
        with zipfile.ZipFile(self.path / "old.pt2", "w") as archive:
            archive.writestr("serialized_exported_program.json", "{}")
            archive.writestr("serialized_state_dict.pt", buffer.getvalue())
            archive.writestr("version", "8.8")
        self.assert_opens(self.path / "old.pt2", tensors)


if __name__ == "__main__":
    unittest.main()
