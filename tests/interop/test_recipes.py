"""Chains of steps over streamed parts give the bytes that torch gives for whole tensors."""

import json
import os
import pathlib
import random
import subprocess
import tempfile
import unittest

import packings
import torch
from common import PROGRAM, raw
from safetensors.torch import save_file
from test_packings import missing

TOOL = pathlib.Path(PROGRAM).parent / "tests" / "run_recipe"
FLOATS = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
CHAINS = 300


class Chain:
    """Steps and, beside each, torch's tensor."""

    def __init__(self, chance, tensors):
        self.chance, self.tensors, self.steps, self.values = chance, tensors, [], []

    def add(self, tensor, kind, inputs=(), **more):
        self.steps.append({"kind": kind, "inputs": list(inputs), **more})
        self.values.append(tensor)
        return len(self.steps) - 1

    def take(self, shape=None, dtype=None):
        """Any tensor, or one of that shape and type."""
        for name, tensor in self.chance.sample(sorted(self.tensors.items()), len(self.tensors)):
            if shape is None or (tuple(tensor.shape) == tuple(shape) and tensor.dtype == dtype):
                return self.add(tensor, "take", name=name)
        name = f"made.{len(self.tensors)}"
        self.tensors[name] = torch.randn(tuple(shape), generator=torch.Generator().manual_seed(len(self.tensors))).to(dtype)
        return self.add(self.tensors[name], "take", name=name)

    def grow(self):
        at = len(self.steps) - 1
        value, chance = self.values[at], self.chance
        rank = value.dim()
        kind = chance.choice(("slice", "concatenate", "permute_rows", "transpose", "reshape", "add_constant", "add", "cast"))
        if kind == "slice" and rank:
            axis = chance.randrange(rank)
            first = chance.randrange(value.shape[axis])
            count = chance.randint(1, value.shape[axis] - first)
            self.add(value.narrow(axis, first, count), kind, [at], axis=axis, first=first, count=count)
        elif kind == "concatenate" and rank and value.numel() < 20000:
            axis = chance.randrange(rank)
            others = []
            for _ in range(chance.randint(1, 2)):
                shape = list(value.shape)
                shape[axis] = chance.randint(1, 5)
                others.append(self.take(shape, value.dtype))
            self.add(torch.cat([value] + [self.values[i] for i in others], axis), kind, [at, *others], axis=axis)
        elif kind == "permute_rows" and rank:
            rows = value.shape[0]
            a = chance.choice([n for n in range(1, rows + 1) if rows % n == 0])
            b = chance.choice([n for n in range(1, rows // a + 1) if rows // a % n == 0])
            turned = value.reshape(-1, a, b, *value.shape[1:]).transpose(1, 2).reshape(value.shape)
            self.add(turned, kind, [at], a=a, b=b)
        elif kind == "transpose" and rank >= 2:
            self.add(value.transpose(-1, -2).contiguous(), kind, [at])
        elif kind == "reshape":
            shape = chance.choice([[value.numel()], [1, *value.shape], [*value.shape, 1], list(reversed(value.shape))])
            self.add(value.reshape(shape), kind, [at], shape=shape)
        elif kind == "add_constant":
            constant = chance.choice((1.0, -0.5, 3.1415927410125732))
            self.add(value + constant, kind, [at], value=constant)
        elif kind == "add":
            self.add(value + self.values[self.take(value.shape, value.dtype)], kind, [at, len(self.steps) - 1])
        elif kind == "cast":
            dtype = chance.choice(sorted(FLOATS))
            self.add(value.to(FLOATS[dtype]), kind, [at], dtype=dtype)

# modelopt knows none; bitsandbytes reads code 8 of FP4 as -0 from its table and as 0 in its code for some processors.
WITHOUT_NEGATIVE_ZERO = ("modelopt-nvfp4", "bitsandbytes-fp4")


class Recipes(unittest.TestCase):
    def setUp(self):
        if not TOOL.exists():
            self.skipTest("run_recipe is not built")

    def run_chain(self, model, folder, steps, memory, piece):
        recipe, out = os.path.join(folder, "recipe.json"), os.path.join(folder, "out")
        with open(recipe, "w") as file:
            json.dump(steps, file)
        done = subprocess.run([TOOL, model, recipe, out, str(memory), str(piece)], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, f"{done.stderr}\n{steps}")
        with open(out, "rb") as file:
            return file.read()

    def test_random_chains_equal_torch(self):
        chance = random.Random(7)
        generator = torch.Generator().manual_seed(7)
        with tempfile.TemporaryDirectory() as folder:
            for number in range(CHAINS):
                shapes = [[chance.randint(1, 40) for _ in range(chance.randint(1, 3))] for _ in range(3)]
                tensors = {f"t{i}": torch.randn(shape, generator=generator).to(chance.choice(list(FLOATS.values())))
                           for i, shape in enumerate(shapes)}
                chain = Chain(chance, tensors)
                chain.take()
                for _ in range(chance.randint(1, 6)):
                    chain.grow()
                model = os.path.join(folder, f"{number}.safetensors")
                save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, model)
                # parts of a few numbers, whatever the memory
                told = self.run_chain(model, folder, chain.steps, 0, chance.choice((1, 64, 1000, 1 << 20)))
                self.assertEqual(told, raw(chain.values[-1]), chain.steps)
                os.remove(model)

    def test_large_tensors_in_small_memory(self):
        with tempfile.TemporaryDirectory() as folder:
            weight = torch.randn(1500, 3000).to(torch.bfloat16)
            model = os.path.join(folder, "m.safetensors")
            save_file({"w": weight}, model)
            steps = [{"kind": "take", "name": "w"}, {"kind": "transpose", "inputs": [0]}, {"kind": "cast", "inputs": [1], "dtype": "f32"}]
            for memory, piece in ((0, 1 << 20), (1 << 20, 12345 * 4), (64 << 20, 64 << 20)):
                self.assertEqual(self.run_chain(model, folder, steps, memory, piece), raw(weight.T.float()))

    def test_a_scaled_product_of_thin_factors(self):
        """Against float64: rounded once."""
        with tempfile.TemporaryDirectory() as folder:
            base, left, right = torch.randn(300, 700).to(torch.bfloat16), torch.randn(300, 16), torch.randn(16, 700)
            model = os.path.join(folder, "m.safetensors")
            save_file({"w": base, "b": left, "a": right}, model)
            steps = [{"kind": "take", "name": name} for name in "wba"] + [{"kind": "add_product", "inputs": [0, 1, 2], "value": 2.0}]
            whole = (base.double() + 2 * (left.double() @ right.double())).float().to(torch.bfloat16)
            for piece in (2, 1000, 1 << 20):
                self.assertEqual(self.run_chain(model, folder, steps, 0, piece), raw(whole))

    def test_packed_weights_are_what_their_libraries_read(self):
        for name in packings.PACKERS:
            if missing(name):
                continue
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                path, _, plain = packings.save(folder, name)
                for weight, numbers in list(plain.items())[:4]:
                    numbers = torch.from_numpy(numbers)
                    steps = [{"kind": "unpack", "name": weight}]
                    dtype = packings.rounded_to(name)
                    if dtype:  # the library rounds to the type that the weight had
                        steps.append({"kind": "cast", "inputs": [0], "dtype": dtype})
                        numbers = numbers.to(FLOATS[dtype])
                    if name in WITHOUT_NEGATIVE_ZERO:
                        steps.append({"kind": "add_constant", "inputs": [len(steps) - 1], "value": 0})
                        numbers = numbers + 0
                    for piece in (1000, 1 << 24):
                        told = self.run_chain(path, folder, steps, 0, piece)
                        self.assertEqual(told, raw(numbers), f"{weight}: {packings.difference(told, numbers)}")


if __name__ == "__main__":
    unittest.main()
