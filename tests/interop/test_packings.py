"""Weights that libraries packed are found, counted and read as what they stand for."""

import importlib.util
import tempfile
import unittest

import packings
from common import inspect, loadline

NEEDS = {"bitsandbytes": "bitsandbytes", "mlx": "mlx", "compressed": "compressed_tensors", "modelopt": "modelopt"}


def missing(name):
    """The library that this packing needs, if it is not installed."""
    module = NEEDS.get(name.split("-")[0])
    return module if module and importlib.util.find_spec(module) is None else ""


class Packings(unittest.TestCase):
    def check(self, name):
        if missing(name):
            self.skipTest(f"not installed: {missing(name)}")
        with tempfile.TemporaryDirectory() as folder:
            path, parameters, plain = packings.save(folder, name)
            told = inspect(path)
            self.assertEqual(told["parameter_count"], parameters)
            self.assertEqual(told["unclaimed"], [])
            self.assertEqual(told["missing"], [])
            self.assertEqual([note for note in told["notes"] if note["severity"] != "info"], [])
            logical = {row["logical"]["name"]: row["logical"] for row in told["tensors"] if "logical" in row}
            self.assertEqual({key: list(value.shape) for key, value in plain.items()},
                             {key: value["shape"] for key, value in logical.items()})
            self.assertNotIn("sizes only", loadline("plan", path, "--method", "mmap_copy", "--seq", "8"))


for _name in packings.PACKERS:
    setattr(Packings, f"test_{_name}".replace("-", "_"), lambda self, name=_name: self.check(name))


if __name__ == "__main__":
    unittest.main()
