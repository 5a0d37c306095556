"""Loads by real frameworks in processes of their own, and our projections of them: a part of `./dev truth`, on
smaller checkpoints. What is measured and how is in loads/; checkpoints stay in build/interop-loads."""

import importlib.util
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "loads"))
import harness  # noqa: E402
import recipes  # noqa: E402

PROGRAM = os.environ["LOADLINE"]
FOLDER = os.path.join(HERE, "..", "..", "build", "interop-loads")  # on a disk: pages of tmpfs count as shared memory
UNTIED, TIED = "llama-small-untied", "llama-small-tied"
PAIRS = (
    ("plain", f"{UNTIED}.bin"),
    ("plain", f"{TIED}.bin"),
    ("state_dict_on_the_device", f"{TIED}.bin"),
    ("meta_map_location", f"{UNTIED}.bin"),
    ("mmap_assign", f"{UNTIED}.shards-bin"),
    ("load_model", f"{UNTIED}.shards-safetensors"),
    ("load_bytes", f"{TIED}.safetensors"),
    ("transformers_v5_to", f"{UNTIED}.shards-safetensors"),
    ("transformers_v5_cpu_then_run", f"{TIED}.safetensors"),
    ("transformers_v5_named_type", "llama-small-named.shards-safetensors"),
    ("transformers_v5_cast_1", f"{UNTIED}.shards-safetensors"),
    ("transformers_v5_cast_2", f"{UNTIED}.shards-safetensors"),
    ("accelerate_cpu", f"{UNTIED}.shards-bin"),
    ("accelerate_device_cast", f"{UNTIED}.shards-safetensors"),
    ("accelerate_auto", f"{UNTIED}.shards-safetensors"),
    ("fastsafetensors_copy_by_file", f"{UNTIED}.shards-safetensors"),
    ("runai_0", f"{UNTIED}.shards-safetensors"),
)
RUNS = 3  # at most: the first that is within tolerance ends it, as a busy machine may delay a sample


def missing(recipe):
    """Packages of a recipe that are not installed."""
    needed = {"torch", "transformers", recipe.framework}
    return sorted(name for name in needed if importlib.util.find_spec(recipes.PACKAGES[name][0]) is None)


class Loads(unittest.TestCase):
    def check(self, name, model):
        recipe = recipes.RECIPES[name]
        if missing(recipe):
            self.skipTest(f"not installed: {', '.join(missing(recipe))}")
        row = None
        for _ in range(RUNS):
            found = harness.measure_runs(FOLDER, name, model, 1)
            row = harness.compare(PROGRAM, FOLDER, name, model, found)
            if row["ok"]:
                break
        held = row["ok"] or recipe.raced and harness.bounded(row)
        told = ", ".join(f"{field} {harness.describe(row['counters'][field]).strip()}" for field in harness.FIELDS)
        versions = ", ".join(f"{package} {version}" for package, version in sorted(row["versions"].items()))
        print(f"\n  {row['method']} {' '.join(row['options'])}: projected/measured MiB: {told} ({versions})", file=sys.stderr)
        self.assertTrue(held, f"{recipe.about}: {told}; {row['reason']}")


def _case(name, model):
    return lambda self: self.check(name, model)


for _name, _model in PAIRS:
    setattr(Loads, f"test_{_name}_{_model}".replace("-", "_").replace(".", "_"), _case(_name, _model))


if __name__ == "__main__":
    unittest.main()
