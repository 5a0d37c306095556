"""A fresh process that runs one recipe: python child.py RECIPE TINY_MODEL MODEL.

Says `ready` when it is warm, runs on a line of input, says `loaded`, and ends on the next line."""

import ctypes
import gc
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import recipes  # noqa: E402


def settle():
    gc.collect()
    ctypes.CDLL("libc.so.6").malloc_trim(0)


def main():
    name, tiny, model = sys.argv[1:]
    recipe = recipes.RECIPES[name]
    recipe.run(tiny)
    settle()
    print("ready", json.dumps(recipes.versions()), flush=True)
    sys.stdin.readline()
    kept = recipe.run(model)
    print("loaded", flush=True)
    sys.stdin.readline()
    del kept


if __name__ == "__main__":
    main()
