"""Loads by runtimes on the processor, and by numpy."""

from recipes import FIXED_HEAP, file_of, recipe

KEPT = "glibc's heap keeps freed blocks that lie below its moving mmap threshold"
ONNX = ("onnx-s.inside", "onnx-m.inside", "onnx-l.inside", "onnx-s.outside", "onnx-m.outside", "onnx-l.outside")


def _session(model, **entries):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    for name, value in entries.items():
        options.add_session_config_entry(name.replace("__", "."), value)
    given = file_of(model, "onnx") if isinstance(model, str) else model
    return onnxruntime.InferenceSession(given, options, providers=["CPUExecutionProvider"])


@recipe("onnxruntime", *ONNX, framework="onnxruntime", variables=FIXED_HEAP)
def onnxruntime_session(model):
    """InferenceSession(path) on the CPU; fixed mmap threshold"""
    return _session(model)


@recipe("onnxruntime", *ONNX, framework="onnxruntime", reason=KEPT)
def onnxruntime_session_default(model):
    """the same with glibc as it is, which keeps what is freed"""
    return _session(model)


@recipe("onnxruntime_unpacked", *ONNX, framework="onnxruntime", variables=FIXED_HEAP)
def onnxruntime_unpacked(model):
    """the same with session.disable_prepacking"""
    return _session(model, session__disable_prepacking="1")


@recipe("onnxruntime_bytes", "onnx-s.inside", "onnx-m.inside", "onnx-l.inside", framework="onnxruntime", variables=FIXED_HEAP)
def onnxruntime_bytes(model):
    """InferenceSession(open(path, 'rb').read())"""
    with open(file_of(model, "onnx"), "rb") as file:
        given = file.read()
    return _session(given)


@recipe("onnxruntime", "onnx-conv.inside", "onnx-conv.outside", framework="onnxruntime", variables=FIXED_HEAP)
def onnxruntime_convolutions(model):
    """InferenceSession(path) of a network of convolutions; fixed mmap threshold"""
    return _session(model)


@recipe("litert", "litert-m.plain", "litert-l.plain", framework="LiteRT")
def litert(model):
    """Interpreter(model_path) with XNNPACK, its default"""
    from ai_edge_litert.interpreter import Interpreter

    made = Interpreter(model_path=file_of(model, "tflite"))
    made.allocate_tensors()
    return made


@recipe("litert_plain", "litert-m.plain", "litert-l.plain", framework="LiteRT", flags=("--activations", "0.1MiB"))
def litert_plain_run(model):
    """the same without delegates, then one pass"""
    import numpy
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    made = Interpreter(model_path=file_of(model, "tflite"),
                       experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
    made.allocate_tensors()
    given = made.get_input_details()[0]
    made.set_tensor(given["index"], numpy.ones(given["shape"], numpy.float32))
    made.invoke()
    return made


@recipe("torch_export", "pt2-s.plain", "pt2-m.plain", "pt2-l.plain")
def torch_export(model):
    """torch.export.load(path)"""
    import torch

    return torch.export.load(file_of(model, "pt2"))


@recipe("numpy_npz", "npz-s.plain", "npz-m.plain", "npz-l.plain", framework="numpy")
def numpy_npz(model):
    """numpy.load(path), every array taken out"""
    import numpy

    with numpy.load(file_of(model, "npz")) as archive:
        return {name: archive[name] for name in archive.files}


@recipe("numpy_safetensors", "gpt2.safetensors", "gpt2.shards-safetensors", "llama-small-named.shards-safetensors", framework="safetensors")
def numpy_safetensors(model):
    """safetensors.numpy.load_file of each file"""
    from recipes import files_of
    from safetensors.numpy import load_file

    state = {}
    for shard in files_of(model, "safetensors"):
        state |= load_file(shard)
    return state


@recipe("openvino", *ONNX, framework="openvino")
def openvino_compile(model):
    """read_model(path), then compile_model(model, 'CPU') on a processor with BF16"""
    import openvino

    core = openvino.Core()
    net = core.read_model(file_of(model, "onnx"))
    return core, net, core.compile_model(net, "CPU")


def _method(given):
    from executorch.runtime import Runtime

    program = Runtime.get().load_program(given)
    return given, program, program.load_method("forward")


@recipe("executorch_mapped", "pte-s.plain", "pte-m.plain", "pte-l.plain", framework="executorch")
def executorch_mapped(model):
    """Runtime.load_program(path) and load_method, ExecuTorch's own kernels"""
    return _method(file_of(model, "pte"))


@recipe("executorch_bytes", "pte-s.plain", "pte-m.plain", "pte-l.plain", framework="executorch")
def executorch_bytes(model):
    """the same with open(path, 'rb').read()"""
    with open(file_of(model, "pte"), "rb") as file:
        given = file.read()
    return _method(given)


@recipe("executorch_xnnpack", "pte-s.xnnpack", "pte-m.xnnpack", "pte-l.xnnpack", framework="executorch")
def executorch_xnnpack(model):
    """Runtime.load_program(path) and load_method of a program for XNNPACK"""
    return _method(file_of(model, "pte"))
