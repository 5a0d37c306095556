"""ExecuTorch and LiteRT files that their own writers wrote, against what their own readers say."""

import importlib.metadata
import pathlib
import sys
import tempfile
import unittest
import warnings

import numpy
import torch

try:
    import flatbuffers
    from ai_edge_litert import schema_py_generated as litert
    from executorch.exir import ExecutorchBackendConfig, to_edge
    from executorch.exir._serialize._program import deserialize_pte_binary
    from executorch.exir._serialize.data_serializer import DataEntry, DataPayload
    from executorch.exir.scalar_type import ScalarType
    from executorch.exir.schema import Tensor
    from executorch.exir.tensor_layout import TensorLayout
    from executorch.extension.flat_tensor.serialize.serialize import FlatTensorSerializer
except ImportError as missing:
    raise unittest.SkipTest(f"not installed: {missing.name}") from missing

from common import every_dtype, inspect, loadline, raw

warnings.simplefilter("ignore")


SCALARS = {torch.float32: "FLOAT", torch.float16: "HALF", torch.bfloat16: "BFLOAT16", torch.float64: "DOUBLE",
           torch.int8: "CHAR", torch.int16: "SHORT", torch.int32: "INT", torch.int64: "LONG", torch.uint8: "BYTE",
           torch.bool: "BOOL"}


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(8, 16)
        self.second = torch.nn.Linear(16, 4)
        self.convolution = torch.nn.Conv2d(1, 3, 3)
        self.register_buffer("scale", torch.rand(4))
        self.register_buffer("count", torch.tensor([1, 2, 3, 4], dtype=torch.int64))

    def forward(self, x):
        y = self.second(torch.relu(self.first(x))) * self.scale + self.count
        return y + self.convolution(x.reshape(1, 1, 2, 4).repeat(1, 1, 2, 1)).sum()


class Flatbuffers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)

    def bytes_of(self, path, tensor):
        return (pathlib.Path(path).parent / tensor["file"]).read_bytes()[tensor["offset"] :][: tensor["bytes"]]

    def test_ptd(self):
        layouts = {"f32": (ScalarType.FLOAT, [2, 3], [0, 1]), "turned": (ScalarType.FLOAT, [2, 3], [1, 0]),
                   "f16": (ScalarType.HALF, [5], [0]), "bf16": (ScalarType.BFLOAT16, [3], [0]),
                   "i64": (ScalarType.LONG, [], []), "i8": (ScalarType.CHAR, [7], [0]), "bool": (ScalarType.BOOL, [2], [0])}
        sizes = {ScalarType.FLOAT: 4, ScalarType.HALF: 2, ScalarType.BFLOAT16: 2, ScalarType.LONG: 8, ScalarType.CHAR: 1, ScalarType.BOOL: 1}
        buffers, named = [], {}
        for name, (scalar, shape, order) in layouts.items():
            named[name] = DataEntry(len(buffers), 16, TensorLayout(scalar, shape, order))
            buffers.append(bytes(range(int(numpy.prod(shape, dtype=int)) * sizes[scalar])))
        named["tied"] = named["f32"]
        named["blob"] = DataEntry(len(buffers), 1, None)
        buffers.append(b"opaque bytes")
        path = self.path / "data.ptd"
        path.write_bytes(bytes(FlatTensorSerializer().serialize(DataPayload(buffers, named))))
        ours = {tensor["name"]: tensor for tensor in inspect(path)["tensors"]}
        theirs = FlatTensorSerializer().deserialize(path.read_bytes())
        self.assertEqual(set(ours), set(theirs.named_data))
        for name, entry in theirs.named_data.items():
            self.assertEqual(self.bytes_of(path, ours[name]), bytes(theirs.buffers[entry.buffer_index]), name)
            if entry.tensor_layout:
                self.assertEqual(ours[name]["shape"], list(entry.tensor_layout.sizes), name)
        self.assertEqual(ours["turned"]["strides"], [1, 2])
        self.assertEqual(ours["tied"]["storage"], ours["f32"]["storage"])
        self.assertEqual(ours["blob"]["dtype"], "OPAQUE")

    def test_executorch_reads_what_we_write(self):
        """Every dtype, ties, alignments and orders, read by ExecuTorch's own reader: equal bytes."""
        from safetensors.torch import save_file

        print("executorch", importlib.metadata.version("executorch"), file=sys.stderr)
        tensors = {name: tensor for name, tensor in every_dtype().items()
                   if not any(word in name for word in ("uint16", "uint32", "uint64", "float8_e8m0", "float8")) and name != "complex"}
        save_file(tensors, self.path / "m.safetensors")
        torch.save({**tensors, "tied": tensors["layer.float32.weight"]}, self.path / "m.pt")
        for source, arguments, alignment in (("m.safetensors", (), 128), ("m.pt", ("--align", "4096"), 4096),
                                             ("m.pt", ("--order", "largest"), 128)):
            out = self.path / f"{source}{len(arguments)}{alignment}.ptd"
            loadline("convert", self.path / source, out, *arguments, "--strict")
            theirs = FlatTensorSerializer().deserialize(out.read_bytes())
            self.assertEqual(set(theirs.named_data), set(tensors) | ({"tied"} if source == "m.pt" else set()))
            for name, entry in theirs.named_data.items():
                tensor = tensors["layer.float32.weight" if name == "tied" else name]
                self.assertEqual(bytes(theirs.buffers[entry.buffer_index]), raw(tensor), name)
                self.assertEqual(list(entry.tensor_layout.sizes), list(tensor.shape))
                self.assertEqual(entry.tensor_layout.scalar_type.name, SCALARS[tensor.dtype], name)
                self.assertEqual(list(entry.tensor_layout.dim_order), list(range(tensor.dim())))
            for tensor in inspect(out)["tensors"]:
                self.assertEqual(tensor["offset"] % alignment, 0)
            if source == "m.pt":
                self.assertEqual(theirs.named_data["tied"].buffer_index, theirs.named_data["layer.float32.weight"].buffer_index)
                sizes = [len(buffer) for buffer in theirs.buffers]
                if "--order" in arguments:
                    self.assertEqual(sizes, sorted(sizes, reverse=True))

    def test_a_program_runs_with_weights_that_we_write(self):
        from safetensors.torch import save_file

        try:
            from executorch.extension.pybindings.portable_lib import _load_for_executorch
        except ImportError as absent:
            self.skipTest(f"not installed: {absent.name}")
        net, _, path = self.export(external_constants=True)
        save_file(net.state_dict(), self.path / "net.safetensors")
        for align in ("16", "4096"):
            loadline("convert", self.path / "net.safetensors", self.path / f"{align}.ptd", "--align", align)
            given = torch.rand(1, 8)
            (out,) = _load_for_executorch(str(path), str(self.path / f"{align}.ptd")).forward((given,))
            torch.testing.assert_close(out, net(given))

    def export(self, **options):
        torch.manual_seed(0)
        net = Net().eval()
        program = to_edge(torch.export.export(net, (torch.rand(1, 8),))).to_executorch(ExecutorchBackendConfig(**options))
        path = self.path / "net.pte"
        with open(path, "wb") as file:
            program.write_to_file(file)
        return net, program, path

    def test_pte(self):
        net, _, path = self.export()
        ours = inspect(path)["tensors"]
        theirs = deserialize_pte_binary(path.read_bytes()).program
        shapes = {}
        for value in theirs.execution_plan[0].values:
            if isinstance(value.val, Tensor) and value.val.data_buffer_idx > 0:
                shapes[value.val.data_buffer_idx] = value.val.sizes
        self.assertEqual(len(ours), len(shapes))
        contents = {self.bytes_of(path, tensor) for tensor in ours}
        for name, value in net.state_dict().items():
            self.assertIn(value.numpy().tobytes(), contents, name)
        for tensor in ours:
            number = int(tensor["name"].split(".")[1])
            self.assertEqual(tensor["shape"], list(shapes[number]))
            self.assertEqual(self.bytes_of(path, tensor), bytes(theirs.constant_buffer[number].storage)[: tensor["bytes"]])

    def test_pte_with_external_weights(self):
        net, program, path = self.export(external_constants=True)
        program.write_tensor_data_to_file(str(self.path))
        model = inspect(path)
        self.assertEqual(model["missing"], [])
        ours = {tensor["name"]: tensor for tensor in model["tensors"]}
        self.assertEqual(set(ours), set(net.state_dict()))
        for name, value in net.state_dict().items():
            self.assertEqual(ours[name]["shape"], list(value.shape))
            self.assertEqual(self.bytes_of(path, ours[name]), value.numpy().tobytes(), name)
        out = self.path / "out.safetensors"
        loadline("convert", path, out)
        for data in self.path.glob("*.ptd"):
            data.unlink()
        self.assertEqual(set(inspect(path)["missing"]), set(net.state_dict()))

    def test_litert(self):
        """Every type code of the schema, packed buffers, a shared buffer and two operators."""
        types = {name: code for name, code in vars(litert.TensorType).items() if not name.startswith("_")}
        bits = {"FLOAT32": 32, "FLOAT16": 16, "INT32": 32, "UINT8": 8, "INT64": 64, "BOOL": 8, "INT16": 16, "COMPLEX64": 64,
                "INT8": 8, "FLOAT64": 64, "COMPLEX128": 128, "UINT64": 64, "UINT32": 32, "UINT16": 16, "INT4": 4,
                "BFLOAT16": 16, "INT2": 2, "UINT4": 4, "FLOAT8_E4M3FN": 8, "FLOAT8_E5M2": 8}
        model, graph = litert.ModelT(), litert.SubGraphT()
        model.version, model.description = 3, "made for a test"
        model.buffers, graph.tensors = [litert.BufferT()], []

        def tensor(name, shape, code, data=None):
            made = litert.TensorT()
            made.name, made.shape, made.type, made.buffer = name, shape, code, 0
            if data is not None:
                buffer = litert.BufferT()
                buffer.data = numpy.frombuffer(data, dtype=numpy.uint8)
                made.buffer = len(model.buffers)
                model.buffers.append(buffer)
            graph.tensors.append(made)
            return len(graph.tensors) - 1

        expected = {}
        for name, width in bits.items():
            data = bytes(range(1, (15 * width + 7) // 8 + 1))
            tensor(f"w.{name}", [3, 5], types[name], data)
            expected[f"w.{name}"] = data
        graph.tensors[tensor("tied", [5, 3], types["FLOAT32"])].buffer = graph.tensors[0].buffer
        expected["tied"] = expected["w.FLOAT32"]
        x, y, z = (tensor(name, [1, 3], types["FLOAT32"]) for name in "xyz")
        model.operatorCodes = []
        graph.operators = []
        for code, inputs, outputs in ((litert.BuiltinOperator.FULLY_CONNECTED, [x, 0, -1], [y]), (litert.BuiltinOperator.GELU, [y], [z])):
            kind, operator = litert.OperatorCodeT(), litert.OperatorT()
            kind.builtinCode, kind.deprecatedBuiltinCode = code, min(code, 127)
            model.operatorCodes.append(kind)
            operator.opcodeIndex, operator.inputs, operator.outputs = len(model.operatorCodes) - 1, inputs, outputs
            graph.operators.append(operator)
        graph.inputs, graph.outputs = [x], [z]
        model.subgraphs = [graph]
        builder = flatbuffers.Builder(1024)
        builder.Finish(model.Pack(builder), b"TFL3")
        path = self.path / "model.tflite"
        path.write_bytes(bytes(builder.Output()))

        ours = {row["name"]: row for row in inspect(path)["tensors"]}
        self.assertEqual(set(ours), set(expected))
        read = litert.Model.GetRootAs(path.read_bytes(), 0)
        for i in range(read.Subgraphs(0).TensorsLength()):
            theirs = read.Subgraphs(0).Tensors(i)
            name = theirs.Name().decode()
            if name not in expected:
                continue
            self.assertEqual(ours[name]["shape"], list(theirs.ShapeAsNumpy()), name)
            data = read.Buffers(theirs.Buffer()).DataAsNumpy().tobytes()
            self.assertEqual(self.bytes_of(path, ours[name]), data, name)
            self.assertEqual(data, expected[name])
            self.assertNotEqual(ours[name]["dtype"], "OPAQUE", name)
        self.assertEqual(ours["tied"]["storage"], ours["w.FLOAT32"]["storage"])


if __name__ == "__main__":
    unittest.main()
