"""What the interop tests share: the program, its answers, and tensors to write."""

import json
import os
import subprocess

import torch

PROGRAM = os.environ["LOADLINE"]


def loadline(*arguments, code=0):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == code, f"{arguments}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def inspect(path):
    return json.loads(loadline("inspect", path, "--tensors", "--json"))


def raw(tensor):
    """The tensor's bytes, whatever its dtype."""
    return tensor.contiguous().flatten().view(torch.uint8).numpy().tobytes() if tensor.numel() else b""


def every_dtype():
    generator = torch.Generator().manual_seed(3)
    floats = [torch.float32, torch.float16, torch.bfloat16, torch.float64]
    integers = [torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.uint16, torch.uint32, torch.uint64, torch.bool]
    small = [torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz, torch.float8_e8m0fnu]
    tensors = {}
    for dtype in floats + integers + small:
        bits = torch.randint(0, 2 if dtype == torch.bool else 256, (5, 7, dtype.itemsize), dtype=torch.uint8, generator=generator)
        tensors[f"layer.{dtype}.weight".replace("torch.", "")] = bits.view(dtype).reshape(5, 7)
    tensors["scalar"] = torch.tensor(3.5)
    tensors["empty"] = torch.zeros(0, 4)
    tensors["complex"] = torch.randn(3, dtype=torch.complex64, generator=generator)
    return tensors
