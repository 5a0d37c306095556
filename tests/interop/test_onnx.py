"""ONNX models of the reference writer: names, types, shapes and bytes, tensor by tensor, and the shapes of values."""

import collections
import json
import pathlib
import subprocess
import tempfile
import unittest
import warnings

import numpy
import onnx
import onnxruntime
import torch
from common import PROGRAM, inspect, loadline
from onnx import TensorProto, helper, numpy_helper
from onnx.external_data_helper import convert_model_to_external_data

# What the program calls each type, and whether safetensors can hold it.
TYPES = {
    "FLOAT": "F32", "UINT8": "U8", "INT8": "I8", "UINT16": "U16", "INT16": "I16", "INT32": "I32", "INT64": "I64",
    "STRING": "STRING", "BOOL": "BOOL", "FLOAT16": "F16", "DOUBLE": "F64", "UINT32": "U32", "UINT64": "U64",
    "COMPLEX64": "C64", "COMPLEX128": "C128", "BFLOAT16": "BF16", "FLOAT8E4M3FN": "F8_E4M3",
    "FLOAT8E4M3FNUZ": "F8_E4M3FNUZ", "FLOAT8E5M2": "F8_E5M2", "FLOAT8E5M2FNUZ": "F8_E5M2FNUZ", "UINT4": "U4",
    "INT4": "I4", "FLOAT4E2M1": "F4", "FLOAT8E8M0": "F8_E8M0", "UINT2": "U2", "INT2": "I2",
}
SAFETENSORS = set(TYPES.values()) - {"STRING", "C128", "U4", "I4", "U2", "I2", "F4", "F8_E4M3FNUZ", "F8_E5M2FNUZ"}


ANY_NAME = {}  # sizes with names are not compared


def type_name(code):
    return TYPES[TensorProto.DataType.Name(code)]


def raw_bytes(tensor, folder):
    """The values as raw_data would hold them, whichever way the tensor holds them."""
    if tensor.data_type == TensorProto.STRING:
        return None
    if tensor.HasField("raw_data"):
        return tensor.raw_data
    array = numpy_helper.to_array(tensor, base_dir=str(folder))
    return numpy_helper.from_array(array).raw_data


def value(name, code=TensorProto.FLOAT, shape=None):
    return helper.make_tensor_value_info(name, code, shape)


def random_tensor(name, *shape, dtype=numpy.float32):
    generator = numpy.random.default_rng(len(name) + sum(shape))
    return numpy_helper.from_array(generator.standard_normal(shape).astype(dtype), name)


def every_type():
    """Seven elements of each type in raw_data and in the typed field: 4 and 2 bits end inside a byte."""
    tensors = []
    for label, ours in TYPES.items():
        code = TensorProto.DataType.Value(label)
        if ours == "STRING":
            tensors.append(helper.make_tensor("typed.STRING", code, [3], [b"", b"one", "zw\u00f6lf".encode()]))
            continue
        values = [1, 0, 1, 1, 0, 1, 1] if ours == "BOOL" else [0, 1, 1, 0, 1, 1, 1]
        if ours.startswith("I"):
            values = [0, 1, -2, 1, -1, 0, 1]
        if ours.startswith("C"):
            values = [complex(v, -v) for v in values]
        typed = helper.make_tensor(f"typed.{ours}", code, [7], values)
        tensors.append(typed)
        raw = numpy_helper.from_array(numpy_helper.to_array(typed), f"raw.{ours}")
        assert raw.HasField("raw_data")
        tensors.append(raw)
    return tensors


class Onnx(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)

    def save(self, graph, name="model.onnx", **options):
        options.setdefault("opset_imports", [helper.make_opsetid("", 17)])
        options.setdefault("ir_version", 10)  # what onnxruntime reads
        model = helper.make_model(graph, **options)
        onnx.save(model, self.path / name)
        return self.path / name

    def assert_tensors(self, path, expected):
        """`expected` maps each name to its TensorProto; the file holds these and no others."""
        answer = inspect(path)
        self.assertEqual([note for note in answer["notes"] if note["severity"] != "info"], [])
        found = {tensor["name"]: tensor for tensor in answer["tensors"]}
        self.assertEqual(set(expected), set(found))
        encoded = {}
        for name, tensor in expected.items():
            self.assertEqual(list(tensor.dims), found[name]["shape"], name)
            self.assertEqual(type_name(tensor.data_type), found[name]["dtype"], name)
            want = raw_bytes(tensor, path.parent)
            if want is None:
                continue
            self.assertEqual(len(want), found[name]["bytes"], name)
            if "encoding" in found[name]:
                encoded[name] = want
                continue
            with open(path.parent / found[name]["file"], "rb") as file:
                file.seek(found[name]["offset"])
                self.assertEqual(want, file.read(found[name]["bytes"]), name)
        return encoded

    def test_every_type_in_raw_data_and_typed_fields(self):
        tensors = every_type()
        path = self.save(helper.make_graph([], "g", [], [], tensors), ir_version=13)
        encoded = self.assert_tensors(path, {tensor.name: tensor for tensor in tensors})
        self.assertIn("typed.I4", encoded)
        self.assertNotIn("typed.F32", encoded)

        # what lies encoded is decoded by convert
        kept = [tensor for tensor in tensors if type_name(tensor.data_type) in SAFETENSORS]
        path = self.save(helper.make_graph([], "g", [], [], kept), ir_version=13)
        loadline("convert", path, self.path / "out.safetensors", "--verify")
        header = (self.path / "out.safetensors").read_bytes()
        length = int.from_bytes(header[:8], "little")
        entries = json.loads(header[8:8 + length])
        self.assertGreater(len(kept), 25)
        for tensor in kept:
            begin, end = entries[tensor.name]["data_offsets"]
            self.assertEqual(header[8 + length + begin:8 + length + end], raw_bytes(tensor, self.path), tensor.name)

    def test_scalars_and_empty_tensors(self):
        tensors = [helper.make_tensor("scalar", TensorProto.FLOAT, [], [2.5]), random_tensor("empty", 0, 4),
                   numpy_helper.from_array(numpy.array(7, dtype=numpy.int64), "raw scalar")]
        self.assert_tensors(self.save(helper.make_graph([], "g", [], [], tensors)), {t.name: t for t in tensors})

    def test_six_bit_numbers(self):
        values = [0, 0.5, 1, -1, 2, 0.25, 1.5, -0.5]
        tensor = numpy_helper.from_array(numpy_helper.to_array(helper.make_tensor("t", TensorProto.FLOAT6E2M3, [8], values)), "t")
        self.assertEqual(len(tensor.raw_data), 6)
        path = self.save(helper.make_graph([], "g", [], [], [tensor]), ir_version=14)
        found = inspect(path)["tensors"][0]
        self.assertEqual((found["dtype"], found["shape"], found["bytes"]), ("F6_E2M3", [8], 6))
        self.assertEqual(path.read_bytes()[found["offset"]:][:6], tensor.raw_data)

    def test_external_data_in_one_file_and_in_many(self):
        for together in (True, False):
            tensors = [random_tensor(f"layer.{i}.w", 3 + i, 50) for i in range(5)]
            tensors.append(numpy_helper.from_array(numpy.arange(1000, dtype=numpy.int64), "ids"))
            model = helper.make_model(helper.make_graph([], "g", [], [], tensors), opset_imports=[helper.make_opsetid("", 17)])
            folder = self.path / str(together)
            folder.mkdir()
            expected = {tensor.name: numpy_helper.from_array(numpy_helper.to_array(tensor), tensor.name) for tensor in tensors}
            convert_model_to_external_data(model, all_tensors_to_one_file=together, location="weights.bin", size_threshold=0)
            onnx.save(model, folder / "model.onnx")
            self.assertLess((folder / "model.onnx").stat().st_size, 2000)
            self.assert_tensors(folder / "model.onnx", expected)
            self.assertEqual(len(inspect(folder / "model.onnx")["files"]), 2 if together else 7)

    def test_shared_external_ranges_are_ties(self):
        weights = random_tensor("a", 8, 8)
        (self.path / "w.bin").write_bytes(bytes(100) + weights.raw_data)
        tensors = []
        for name in ("a", "b"):
            tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=[8, 8], data_location=TensorProto.EXTERNAL)
            for key, text in {"location": "w.bin", "offset": "100", "length": "256"}.items():
                tensor.external_data.add(key=key, value=text)
            tensors.append(tensor)
        path = self.save(helper.make_graph([], "g", [], [], tensors))
        self.assert_tensors(path, {"a": weights, "b": weights})
        self.assertEqual(inspect(path)["tied"], [["a", "b"]])
        self.assertEqual(inspect(path)["tensor_bytes"], 256)

    def test_tensors_in_subgraphs(self):
        inner, other = random_tensor("w", 2, 2), random_tensor("const", 3)
        then = helper.make_graph([helper.make_node("Add", ["x", "w"], ["t"])], "then", [], [value("t")], [inner])
        orelse = helper.make_graph([helper.make_node("Constant", [], ["e"], name="c", value=other)], "else", [], [value("e")])
        body = helper.make_graph(
            [helper.make_node("Identity", ["cond"], ["cond_out"]), helper.make_node("Add", ["carried", "step"], ["next"])], "body",
            [value("i", TensorProto.INT64, []), value("cond", TensorProto.BOOL, []), value("carried", shape=[2, 2])],
            [value("cond_out", TensorProto.BOOL, []), value("next", shape=[2, 2])], [random_tensor("step", 2, 2)])
        scan = helper.make_graph([helper.make_node("Add", ["state", "bias"], ["state_out"]), helper.make_node("Identity", ["row"], ["row_out"])],
                                 "scan", [value("state", shape=[2]), value("row", shape=[2])],
                                 [value("state_out", shape=[2]), value("row_out", shape=[2])], [random_tensor("bias", 2)])
        graph = helper.make_graph(
            [helper.make_node("If", ["flag"], ["chosen"], name="if", then_branch=then, else_branch=orelse),
             helper.make_node("Loop", ["count", "flag", "x"], ["looped"], name="loop", body=body),
             helper.make_node("Scan", ["start", "x"], ["final", "rows"], name="scan", body=scan, num_scan_inputs=1)],
            "g", [value("flag", TensorProto.BOOL, []), value("x", shape=[2, 2])], [value("chosen"), value("looped"), value("final"), value("rows")],
            [helper.make_tensor("count", TensorProto.INT64, [], [3]), random_tensor("start", 2)])
        path = self.save(graph)
        onnxruntime.InferenceSession(str(path))
        self.assert_tensors(path, {
            "count": graph.initializer[0], "start": graph.initializer[1], "if/then_branch/w": inner, "if/else_branch/c/value": other,
            "loop/body/step": body.initializer[0], "scan/body/bias": scan.initializer[0]})
        loop = next(op for op in self.forward(path)["ops"] if op["kind"] == "Loop")
        self.assertEqual(sorted(loop["weights"]), ["count", "loop/body/step"])

    def test_functions_sparse_initializers_and_training(self):
        constant, sparse_values = random_tensor("k", 2), random_tensor("sparse", 2)
        function = helper.make_function("local", "Plus", ["i"], ["o"], [helper.make_node("Constant", [], ["k"], value=constant), helper.make_node("Add", ["i", "k"], ["o"])],
                                        [helper.make_opsetid("", 21)])
        indices = helper.make_tensor("", TensorProto.INT64, [2], [1, 4])
        sparse = helper.make_sparse_tensor(sparse_values, indices, [6])
        graph = helper.make_graph([helper.make_node("Plus", ["x"], ["y"], domain="local")], "g", [value("x", shape=["batch", 2])], [value("y")], [random_tensor("w", 3)],
                                  sparse_initializer=[sparse])
        model = helper.make_model(graph, functions=[function], opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("local", 1)])
        training = model.training_info.add()
        training.algorithm.name = "step"
        training.algorithm.initializer.append(random_tensor("rate", 1))
        onnx.save(model, self.path / "model.onnx")
        self.assert_tensors(self.path / "model.onnx", {
            "w": graph.initializer[0], "sparse": sparse_values, "sparse/indices": indices, "Plus/k/value": constant,
            "training/algorithm/rate": training.algorithm.initializer[0]})

    def forward(self, path):
        """The operators and values that the program sees. Its own command line does not show them."""
        program = pathlib.Path(PROGRAM).parent / "tests" / "dump_graph"
        if not program.exists():
            self.skipTest("dump_graph is not built")
        return json.loads(subprocess.run([program, str(path)], capture_output=True, text=True, check=True).stdout)["forward"]

    def assert_value_shapes(self, path, known_as):
        """Every shape that the newest shape inference finds is ours, too; sizes by name where it names them."""
        ours = {v["name"]: v for v in self.forward(path)["values"]}
        inferred = onnx.shape_inference.infer_shapes(onnx.load(path), data_prop=True).graph
        compared = 0
        for info in [*inferred.value_info, *inferred.output, *inferred.input]:
            tensor = info.type.tensor_type
            dims = [str(d.dim_value) if d.HasField("dim_value") else known_as.get(d.dim_param, d.dim_param) for d in tensor.shape.dim]
            if info.name not in ours or not tensor.HasField("shape") or "" in dims or any(d.startswith("unk__") for d in dims):
                continue
            shape = ours[info.name].get("shape")
            if known_as is ANY_NAME:
                self.assertIsNotNone(shape, info.name)
                shape, dims = ([d if d.isdigit() else "?" for d in sizes] for sizes in (shape, dims))
            self.assertEqual(shape, dims, info.name)
            self.assertEqual(ours[info.name].get("dtype"), type_name(tensor.elem_type), info.name)
            compared += 1
        return compared

    def test_shapes_of_a_convolutional_network(self):
        nodes = [helper.make_node("Conv", ["x", "w1"], ["c1"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]), helper.make_node("Relu", ["c1"], ["r1"]),
                 helper.make_node("MaxPool", ["r1"], ["p1"], kernel_shape=[2, 2], strides=[2, 2]),
                 helper.make_node("BatchNormalization", ["p1", "s", "b", "m", "v"], ["n1"]), helper.make_node("GlobalAveragePool", ["n1"], ["g1"]),
                 helper.make_node("Flatten", ["g1"], ["f1"]), helper.make_node("Gemm", ["f1", "w2"], ["y"])]
        tensors = [random_tensor("w1", 8, 3, 3, 3), *(random_tensor(name, 8) for name in "sbmv"), random_tensor("w2", 8, 10)]
        path = self.save(helper.make_graph(nodes, "g", [value("x", shape=["N", 3, 32, 32])], [value("y")], tensors))
        onnxruntime.InferenceSession(str(path))
        self.assertEqual(self.assert_value_shapes(path, {"N": "B"}), 8)

    def test_shapes_of_an_attention_block(self):
        shape = helper.make_tensor("split", TensorProto.INT64, [4], [0, 0, 4, 16])
        nodes = [helper.make_node("Gather", ["embed", "ids"], ["h"]), helper.make_node("MatMul", ["h", "wq"], ["q"]), helper.make_node("MatMul", ["h", "wk"], ["k"]),
                 helper.make_node("Reshape", ["q", "split"], ["q4"]), helper.make_node("Reshape", ["k", "split"], ["k4"]),
                 helper.make_node("Transpose", ["q4"], ["qt"], perm=[0, 2, 1, 3]), helper.make_node("Transpose", ["k4"], ["kt"], perm=[0, 2, 3, 1]),
                 helper.make_node("MatMul", ["qt", "kt"], ["scores"]), helper.make_node("Softmax", ["scores"], ["p"]),
                 helper.make_node("LayerNormalization", ["h", "gain"], ["n"]), helper.make_node("Cast", ["n"], ["half"], to=TensorProto.FLOAT16)]
        tensors = [random_tensor("embed", 100, 64), random_tensor("wq", 64, 64), random_tensor("wk", 64, 64), random_tensor("gain", 64), shape]
        graph = helper.make_graph(nodes, "g", [value("ids", TensorProto.INT64, ["batch_size", "sequence_length"])], [value("p"), value("half", TensorProto.FLOAT16)], tensors)
        path = self.save(graph)
        onnxruntime.InferenceSession(str(path))
        self.assertGreaterEqual(self.assert_value_shapes(path, {"batch_size": "B", "sequence_length": "S"}), 12)
        weights = {op["outputs"][0]: op["weights"] for op in self.forward(path)["ops"]}
        self.assertEqual(weights["h"], ["embed"])
        self.assertEqual(weights["q4"], ["split"])

        # the same with every tensor, shapes too, in another file
        model = onnx.load(path)
        convert_model_to_external_data(model, location="all.bin", size_threshold=0)
        onnx.save(model, self.path / "external.onnx")
        self.assertEqual(self.forward(self.path / "external.onnx")["values"], self.forward(path)["values"])

    def test_shapes_in_a_newer_operator_set_and_with_newer_types(self):
        for opset, ir_version in ((18, 8), (21, 10), (23, 11)):
            nodes = [helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"]), helper.make_node("Transpose", ["q"], ["qt"]),
                     helper.make_node("DequantizeLinear", ["qt", "scale", "zero"], ["y"]), helper.make_node("ReduceMean", ["y", "axes"], ["r"])]
            kind = TensorProto.INT4 if opset >= 21 else TensorProto.INT8
            tensors = [helper.make_tensor("scale", TensorProto.FLOAT, [], [0.5]), helper.make_tensor("zero", kind, [], [0]), helper.make_tensor("axes", TensorProto.INT64, [1], [0])]
            path = self.save(helper.make_graph(nodes, "g", [value("x", shape=["batch", 8])], [value("r")], tensors), opset_imports=[helper.make_opsetid("", opset)], ir_version=ir_version)
            self.assertGreaterEqual(self.assert_value_shapes(path, {"batch": "B"}), 4)

    def test_shapes_of_every_operator_with_attributes(self):
        """onnx's own models of each operator, whose shapes are not written down: inferred as the models have them, or unknown and, where an
        attribute is the reason, named."""
        from onnx.backend.test.case.node import collect_testcases

        counts, seen = collections.Counter(), set()
        for case in collect_testcases(None):
            if case.model is None or "_expanded" in case.name or len(case.model.graph.node) != 1 or case.model.graph.node[0].domain:
                continue
            node, outputs = case.model.graph.node[0], case.model.graph.output
            setting = (node.op_type, *sorted(a.name + str(onnx.helper.get_attribute_value(a))[:40] for a in node.attribute if a.type != onnx.AttributeProto.GRAPH))
            kinds = {value.type.WhichOneof("value") for value in [*case.model.graph.input, *outputs]}
            if len(setting) == 1 or setting in seen or kinds != {"tensor_type"}:
                continue
            seen.add(setting)
            wanted = {o.name: (type_name(o.type.tensor_type.elem_type), [str(d.dim_value) for d in o.type.tensor_type.shape.dim]) for o in outputs}
            for o in outputs:
                o.type.tensor_type.ClearField("shape")
                o.type.tensor_type.elem_type = 0
            onnx.save(case.model, self.path / "model.onnx")
            forward = self.forward(self.path / "model.onnx")
            ours = {v["name"]: v for v in forward["values"]}
            with self.subTest(case.name):
                for name, (dtype, dims) in wanted.items():
                    shape = ours[name].get("shape")
                    fixed = shape is not None and all(d.isdigit() for d in shape)
                    counts["known" if fixed else "unknown"] += 1
                    if fixed:
                        self.assertEqual(shape, dims)
                    if ours[name].get("dtype"):
                        self.assertEqual(ours[name]["dtype"], dtype)
        print(f"  onnx {onnx.__version__}: {len(seen)} settings of operators, {dict(counts)}")
        self.assertGreater(counts["known"], counts["unknown"])

    def test_models_that_come_with_the_packages(self):
        """Whatever onnx and onnxruntime carry: initializers as the reference reads them, shapes as it infers them."""
        packages = pathlib.Path(onnx.__file__).parent, pathlib.Path(onnxruntime.__file__).parent
        paths = sorted(path for package in packages for path in package.rglob("*.onnx"))
        self.assertGreater(len(paths), 50)
        shapes = initializers = 0
        for path in paths:
            with self.subTest(path=path):
                found = {tensor["name"]: tensor for tensor in inspect(path)["tensors"]}
                for tensor in onnx.load(path).graph.initializer:
                    initializers += 1
                    self.assertEqual(list(tensor.dims), found[tensor.name]["shape"], tensor.name)
                    if "encoding" not in found[tensor.name] and tensor.data_type != TensorProto.STRING:
                        data = path.read_bytes()[found[tensor.name]["offset"]:][:found[tensor.name]["bytes"]]
                        self.assertEqual(data, raw_bytes(tensor, path.parent), tensor.name)
                if path.name != "logreg_iris.onnx":  # a sequence of maps stops Debian's version
                    shapes += self.assert_value_shapes(path, ANY_NAME)
        self.assertGreater(initializers, 10)
        self.assertGreater(shapes, 100)

    def test_a_transformer_that_torch_exports(self):
        layer = torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
        model = torch.nn.Sequential(torch.nn.Embedding(100, 32), torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)).eval()
        path = self.path / "model.onnx"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(model, (torch.zeros(2, 7, dtype=torch.long),), str(path), dynamo=False, input_names=["ids"], dynamic_axes={"ids": {0: "batch", 1: "sequence"}})
        found = {tensor["name"]: tensor for tensor in inspect(path)["tensors"]}
        data = path.read_bytes()
        same = [name for name, tensor in model.state_dict().items() if name in found
                and data[found[name]["offset"]:][:found[name]["bytes"]] == tensor.numpy().tobytes()]
        self.assertGreater(len(same), 5)  # it transposes matrices and merges equal tensors
        forward = self.forward(path)
        self.assertEqual(next(v for v in forward["values"] if v["name"] == "ids")["shape"], ["B", "S"])
        self.assertGreater(len(forward["ops"]), 50)

    def test_overloads_of_functions(self):
        """Each call has the shapes of its own overload; an older reader takes the first function of a name."""
        functions = []
        for overload, kind in (("one", "Identity"), ("two", "Shape")):
            functions.append(helper.make_function("f", "f", ["i"], ["o"], [helper.make_node(kind, ["i"], ["o"])], [helper.make_opsetid("", 17)]))
            functions[-1].overload = overload
        calls = [helper.make_node("f", ["x"], [name], domain="f", overload=overload) for name, overload in (("y", "two"), ("z", "one"))]
        graph = helper.make_graph(calls, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [8, 4, 2])],
                                  [helper.make_tensor_value_info("y", TensorProto.INT64, None), helper.make_tensor_value_info("z", TensorProto.FLOAT, None)])
        model = helper.make_model(graph, functions=functions, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("f", 1)])
        path = self.path / "overloads.onnx"
        onnx.save(model, path)
        shapes = {value["name"]: value.get("shape") for value in self.forward(path)["values"]}
        self.assertEqual([shapes["y"], shapes["z"]], [["3"], ["8", "4", "2"]])

    def test_broken_links_between_writer_and_reader(self):
        """What the reference refuses is refused here."""
        tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[1], data_location=TensorProto.EXTERNAL)
        tensor.external_data.add(key="location", value="../w.bin")
        folder = self.path / "model"
        folder.mkdir()
        (self.path / "w.bin").write_bytes(bytes(4))
        onnx.save(helper.make_model(helper.make_graph([], "g", [], [], [tensor])), folder / "m.onnx")
        with self.assertRaises(Exception):
            onnx.load(folder / "m.onnx")
        loadline("inspect", folder / "m.onnx", code=1)


if __name__ == "__main__":
    unittest.main()
