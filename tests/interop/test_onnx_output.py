"""ONNX files that we write: checked by onnx, run by onnxruntime, with the results of their sources."""

import importlib.util
import pathlib
import sys
import tempfile
import unittest
import warnings

import numpy
import onnx
import onnxruntime
import torch
from common import inspect, loadline
from onnx import TensorProto, helper, numpy_helper
from onnx.external_data_helper import convert_model_to_external_data

warnings.simplefilter("ignore")
onnxruntime.set_default_logger_severity(3)


def session(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def inputs_of(run):
    """Random inputs; silero's models take 576 samples, a state, and the rate."""
    generator = numpy.random.default_rng(3)
    given = {}
    for wanted in run.get_inputs():
        shape = [side if isinstance(side, int) else 1 for side in wanted.shape]
        if wanted.name == "sr":
            given[wanted.name] = numpy.array(16000, numpy.int64)
            continue
        if wanted.name == "input" and len(shape) == 2 and not isinstance(wanted.shape[1], int):
            shape[1] = 576
        dtype = {"tensor(float)": numpy.float32, "tensor(float16)": numpy.float16, "tensor(int64)": numpy.int64}[wanted.type]
        given[wanted.name] = (generator.standard_normal(shape) * 0.1).astype(dtype)
    return given


def initializers(graph):
    """Those of the graph, and of the graphs in its operators."""
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            yield from initializers(attribute.g)
            for inner in attribute.graphs:
                yield from initializers(inner)


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(500, 64)
        self.layer = torch.nn.TransformerEncoderLayer(64, 4, 256, batch_first=True)
        self.convolution = torch.nn.Conv1d(64, 32, 3)

    def forward(self, tokens):
        return self.convolution(self.layer(self.embed(tokens)).transpose(1, 2))


class OnnxOutput(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        print("onnx", onnx.__version__, "onnxruntime", onnxruntime.__version__, file=sys.stderr)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def assert_same_model(self, ours, theirs):
        """Everything equal, and every initializer by its numbers."""
        ours, theirs = onnx.load(ours), onnx.load(theirs)
        self.assertEqual([tensor.name for tensor in ours.graph.initializer], [tensor.name for tensor in theirs.graph.initializer])
        for mine, other in zip(ours.graph.initializer, theirs.graph.initializer):
            self.assertEqual((list(mine.dims), mine.data_type), (list(other.dims), other.data_type), mine.name)
            self.assertEqual(numpy_helper.to_array(mine).tobytes(), numpy_helper.to_array(other).tobytes(), mine.name)
        for model in (ours, theirs):
            del model.graph.initializer[:]
            for node in model.graph.node:  # initializers of branches
                for attribute in node.attribute:
                    del attribute.g.initializer[:]
        self.assertEqual(ours, theirs)

    def convert_both_ways(self, source):
        """To external data at two alignments and orders, and back into one file; checked, run and compared."""
        source_run = session(source)
        given = inputs_of(source_run)
        expected = source_run.run(None, given)
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        large = {tensor.name for tensor in initializers(onnx.load(source).graph) if len(numpy_helper.to_array(tensor).tobytes()) >= 1024}
        for name, arguments, align in (("page", (), 4096), ("wide", ("--align", "65536"), 65536), ("order", ("--order", "largest"), 4096)):
            out = folder / name / "model.onnx"
            loadline("convert", source, out, *arguments, "--verify", "--strict")
            onnx.checker.check_model(str(out), full_check=True)
            self.assert_same_model(out, source)
            for tensor in inspect(out)["tensors"]:
                if tensor.get("file", "").endswith(".data"):
                    self.assertEqual(tensor["offset"] % align, 0)
            outside = {tensor.name for tensor in initializers(onnx.load(out, load_external_data=False).graph)
                       if tensor.data_location == TensorProto.EXTERNAL}
            self.assertEqual(outside, large)
            for mine, other in zip(session(out).run(None, given), expected):
                numpy.testing.assert_array_equal(mine, other)
            back = folder / f"{name}-one.onnx"
            loadline("convert", out, back, "--inline-weights", "--strict")
            onnx.checker.check_model(str(back), full_check=True)
            self.assertFalse(any(tensor.external_data for tensor in onnx.load(back, load_external_data=False).graph.initializer))
            self.assert_same_model(back, source)
            for mine, other in zip(session(back).run(None, given), expected):
                numpy.testing.assert_array_equal(mine, other)
        return len(large)

    def test_silero(self):
        found = importlib.util.find_spec("silero_vad")
        if found is None:
            self.skipTest("silero-vad is not installed")
        models = sorted((pathlib.Path(found.origin).parent / "data").glob("*.onnx"))
        self.assertGreater(len(models), 4)
        moved = 0
        for model in models:
            with self.subTest(model.name):
                moved += self.convert_both_ways(model)
        self.assertGreater(moved, 20)

    def test_exported_by_torch(self):
        net, tokens = Block().eval(), torch.randint(0, 500, (1, 7))
        for dynamo in (True, False):
            path = self.folder / f"torch-{dynamo}.onnx"
            try:
                torch.onnx.export(net, (tokens,), str(path), dynamo=dynamo, verbose=False)
            except Exception as failure:  # an exporter that this torch has not
                self.assertFalse(dynamo, failure)
                continue
            self.assertGreater(self.convert_both_ways(path), 5)

    def test_external_data_of_onnx_itself(self):
        generator = numpy.random.default_rng(1)
        weights = {name: numpy_helper.from_array(generator.standard_normal(shape).astype(numpy.float32), name)
                   for name, shape in (("a", (64, 64)), ("b", (64, 32)), ("c", (32,)))}
        typed = helper.make_tensor("d", TensorProto.FLOAT, [32, 32], generator.standard_normal(1024).astype(numpy.float32))
        nodes = [helper.make_node("MatMul", ["x", "a"], ["xa"]), helper.make_node("MatMul", ["xa", "b"], ["xb"]),
                 helper.make_node("Add", ["xb", "c"], ["xc"]), helper.make_node("MatMul", ["xc", "d"], ["y"])]
        value = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)  # noqa: E731
        graph = helper.make_graph(nodes, "g", [value("x", [3, 64])], [value("y", [3, 32])], [*weights.values(), typed])
        for one_file in (True, False):
            model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
            convert_model_to_external_data(model, all_tensors_to_one_file=one_file, location="w.bin" if one_file else None, size_threshold=0)
            path = self.folder / f"theirs{one_file}" / "m.onnx"
            path.parent.mkdir()
            onnx.save(model, path)
            self.convert_both_ways(path)

    def test_the_two_thresholds_agree(self):
        """What onnx's own helper moves by default, and no other; it counts some 30 bytes of Python with each."""
        tensors = [numpy_helper.from_array(numpy.zeros(size, numpy.uint8), f"t{size}") for size in (1, 900, 1024, 1025, 9000)]
        model = helper.make_model(helper.make_graph([], "g", [], [], tensors), ir_version=10)
        onnx.save(model, self.folder / "m.onnx")
        loadline("convert", self.folder / "m.onnx", self.folder / "o.onnx")
        onnx.save(model, self.folder / "theirs.onnx", save_as_external_data=True)
        names = lambda path: {tensor.name for tensor in onnx.load(path, load_external_data=False).graph.initializer  # noqa: E731
                              if tensor.data_location == TensorProto.EXTERNAL}
        self.assertEqual(names(self.folder / "o.onnx"), names(self.folder / "theirs.onnx"))


if __name__ == "__main__":
    unittest.main()
