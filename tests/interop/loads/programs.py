"""Random models of several hundred MB with their operators, as exporters write them for runtimes.

A name is FORMAT-SIZE.LAYOUT, such as `onnx-m.outside`. Each is a folder with one model: perceptrons between an
embedding and a head, or convolutions."""

import os

import numpy
from recipes import folder_once

# size: (layers, hidden size, rows of the embedding and columns of the head; 0: neither)
SIZES = {"s": (4, 1024, 32000), "m": (8, 1408, 0), "l": (8, 1280, 40000), "tiny": (2, 64, 512)}
CONVOLUTIONS = {"conv": (9, 1024, 3), "tiny": (2, 32, 3)}  # layers, channels, side of the kernel
_BLOCK = numpy.random.default_rng(1).standard_normal(1 << 19, dtype=numpy.float32) * numpy.float32(0.02)
_UNIQUE = numpy.random.default_rng(2)


def _numbers(shape):
    """Cheap, and no two are equal: runtimes share equal weights."""
    count = int(numpy.prod(shape))
    made = numpy.resize(_BLOCK, count)
    made[:64] = _UNIQUE.standard_normal(min(count, 64), dtype=numpy.float32)
    return made.reshape(shape)


def _layers(size):
    """(name, rows, columns) of each matrix between embedding and head."""
    layers, hidden, _ = SIZES[size]
    for layer in range(layers):
        yield f"layers.{layer}.up.weight", hidden, 4 * hidden
        yield f"layers.{layer}.down.weight", 4 * hidden, hidden


def _onnx_perceptron(size, onnx):
    make = onnx.helper
    _, hidden, vocabulary = SIZES[size]
    weights, nodes, x, kind = [], [], "x", onnx.TensorProto.FLOAT

    def weight(name, shape):
        weights.append(onnx.numpy_helper.from_array(_numbers(shape), name))
        return name

    if vocabulary:
        nodes.append(make.make_node("Gather", [weight("embed.weight", (vocabulary, hidden)), "x"], ["embedded"]))
        x, kind = "embedded", onnx.TensorProto.INT64
    for name, rows, columns in _layers(size):
        nodes.append(make.make_node("MatMul", [x, weight(name, (rows, columns))], [name + ".out"]))
        x = name + ".out"
        if ".up." in name:
            nodes.append(make.make_node("Relu", [x], [x + ".relu"]))
            x += ".relu"
    if vocabulary:
        nodes.append(make.make_node("MatMul", [x, weight("head.weight", (hidden, vocabulary))], ["out"]))
        x = "out"
    given = make.make_tensor_value_info("x", kind, ["n"] if vocabulary else ["n", hidden])
    return nodes, [given], [make.make_tensor_value_info(x, onnx.TensorProto.FLOAT, None)], weights


def _onnx_convolutions(size, onnx):
    make = onnx.helper
    layers, channels, side = CONVOLUTIONS[size]
    weights, nodes, x = [], [], "x"
    for layer in range(layers):
        name = f"layers.{layer}.weight"
        weights.append(onnx.numpy_helper.from_array(_numbers((channels, channels, side, side)), name))
        nodes.append(make.make_node("Conv", [x, name], [f"y{layer}"], pads=[side // 2] * 4))
        nodes.append(make.make_node("Relu", [f"y{layer}"], [f"z{layer}"]))
        x = f"z{layer}"
    given = make.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, channels, "height", "width"])
    return nodes, [given], [make.make_tensor_value_info(x, onnx.TensorProto.FLOAT, None)], weights


def _write_onnx(folder, size, layout, tiny):
    import onnx

    maker = _onnx_convolutions if size == "conv" else _onnx_perceptron
    nodes, inputs, outputs, weights = maker("tiny" if tiny else size, onnx)
    graph = onnx.helper.make_graph(nodes, "model", inputs, outputs, weights)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9)
    outside = {"save_as_external_data": True, "location": "model.onnx.data", "size_threshold": 1024} if layout == "outside" else {}
    onnx.save(model, os.path.join(folder, "model.onnx"), **outside)


def _state(size):
    _, hidden, vocabulary = SIZES[size]
    if vocabulary:
        yield "embed.weight", _numbers((vocabulary, hidden))
    for name, rows, columns in _layers(size):
        yield name, _numbers((columns, rows))
    if vocabulary:
        yield "head.weight", _numbers((vocabulary, hidden))


def _write_npz(folder, size, _layout, tiny):
    numpy.savez(os.path.join(folder, "model.npz"), **dict(_state("tiny" if tiny else size)))


def _write_litert(folder, size, _layout, tiny):
    """Fully connected layers, as converters write them."""
    import flatbuffers
    from ai_edge_litert import schema_py_generated as schema

    size = "tiny" if tiny else size
    model, graph = schema.ModelT(), schema.SubGraphT()
    model.version, model.description, model.buffers, model.subgraphs = 3, "random weights", [schema.BufferT()], [graph]
    graph.tensors, graph.operators, graph.name = [], [], "main"
    code = schema.OperatorCodeT()
    code.builtinCode = code.deprecatedBuiltinCode = schema.BuiltinOperator.FULLY_CONNECTED
    code.version, model.operatorCodes = 1, [code]

    def tensor(name, shape, data=None):
        made = schema.TensorT()
        made.name, made.shape, made.type, made.buffer = name.encode(), shape, schema.TensorType.FLOAT32, 0
        if data is not None:
            buffer = schema.BufferT()
            buffer.data = data.reshape(-1).view(numpy.uint8)
            made.buffer = len(model.buffers)
            model.buffers.append(buffer)
        graph.tensors.append(made)
        return len(graph.tensors) - 1

    x = tensor("x", [4, SIZES[size][1]])
    graph.inputs = [x]
    for name, rows, columns in _layers(size):
        made = schema.OperatorT()
        made.inputs = [x, tensor(name, [columns, rows], _numbers((columns, rows))), tensor(name + ".bias", [columns], _numbers((columns,)))]
        x = tensor(name + ".out", [4, columns])
        made.outputs, made.opcodeIndex = [x], 0
        made.builtinOptionsType, made.builtinOptions = schema.BuiltinOptions.FullyConnectedOptions, schema.FullyConnectedOptionsT()
        graph.operators.append(made)
    graph.outputs = [x]
    builder = flatbuffers.Builder(1 << 20)
    builder.Finish(model.Pack(builder), b"TFL3")
    with open(os.path.join(folder, "model.tflite"), "wb") as file:
        file.write(builder.Output())


def _module(size):
    import torch

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            _, hidden, vocabulary = SIZES[size]
            self.embed = torch.nn.Embedding(vocabulary, hidden, device="meta") if vocabulary else None
            self.layers = torch.nn.ModuleList(
                torch.nn.ModuleDict({"up": torch.nn.Linear(hidden, 4 * hidden, bias=False, device="meta"),
                                     "down": torch.nn.Linear(4 * hidden, hidden, bias=False, device="meta")})
                for _ in range(SIZES[size][0]))
            self.head = torch.nn.Linear(hidden, vocabulary, bias=False, device="meta") if vocabulary else None

        def forward(self, x):
            x = self.embed(x) if self.embed else x
            for layer in self.layers:
                x = layer["down"](torch.relu(layer["up"](x)))
            return self.head(x) if self.head else x

    net = Net().eval()
    net.load_state_dict({name: torch.from_numpy(numbers) for name, numbers in _state(size)}, assign=True)
    return net, (torch.ones(4, dtype=torch.long) if net.embed else torch.ones(4, SIZES[size][1]),)


def _write_pt2(folder, size, _layout, tiny):
    import torch

    net, given = _module("tiny" if tiny else size)
    torch.export.save(torch.export.export(net, given), os.path.join(folder, "model.pt2"))


def _write_pte(folder, size, layout, tiny):
    """With ExecuTorch's own kernels, or for XNNPACK."""
    import torch
    from executorch.exir import to_edge, to_edge_transform_and_lower

    net, given = _module("tiny" if tiny else size)
    exported = torch.export.export(net, given)
    if layout == "xnnpack":
        from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner

        program = to_edge_transform_and_lower(exported, partitioner=[XnnpackPartitioner()]).to_executorch()
    else:
        program = to_edge(exported).to_executorch()
    with open(os.path.join(folder, "model.pte"), "wb") as file:
        program.write_to_file(file)


WRITERS = {"onnx": _write_onnx, "npz": _write_npz, "litert": _write_litert, "pt2": _write_pt2, "pte": _write_pte}


def make(root, name, tiny=False):
    """The folder of a checkpoint; written on first use, whole or not at all."""
    family, layout = name.split(".")
    form, size = family.split("-")
    return folder_once(root, name, tiny, lambda folder: WRITERS[form](folder, size, layout, tiny))


if __name__ == "__main__":
    import sys

    for asked in sys.argv[2:]:
        print(make(sys.argv[1], asked.removeprefix("tiny-"), asked.startswith("tiny-")))
