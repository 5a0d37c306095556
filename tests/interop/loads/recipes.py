"""Loads as people write them, each with the method of Loadline that claims to be it.

A recipe gets a checkpoint's folder and returns what has to stay alive. Imports happen inside, so that the
table can be listed without any framework. recipes_*.py hold the recipes of one family each."""

import glob
import json
import os
import shutil
from dataclasses import dataclass

RECIPES = {}
DEFAULT_HEAPS = ("torch", "transformers", "accelerate")  # frameworks whose default heap is projected, too

# Older versions are installed in folders of their own, in front of the newer: {folder: requirement}.
ENVIRONMENTS = {f"transformers-{version}": f"transformers=={version}" for version in ("4.57.3", "4.38.2")}


# With a threshold that is set, glibc gives every large block back that is freed. By itself it keeps many.
FIXED_HEAP = (("MALLOC_MMAP_THRESHOLD_", "131072"),)


@dataclass(frozen=True)
class Recipe:
    run: object
    method: str  # the method that claims to be this load; empty: none does
    models: tuple  # checkpoints it runs on
    flags: tuple = ()  # of `loadline plan`; or a function of the checkpoint's folder that returns them
    framework: str = "torch"  # whose version decides
    environment: str = ""  # one of ENVIRONMENTS; empty: the newest
    variables: tuple = ()  # of the process: (name, value) pairs
    about: str = ""
    raced: bool = False  # threads race: the claim is their worst case, which a busy machine need not meet
    reason: str = ""  # why the projection is off, where that is known

    def options(self, model):
        flags = list(self.flags(model) if callable(self.flags) else self.flags)
        return flags + (["--allocator", "fixed"] if self.variables == FIXED_HEAP else [])


def folder_once(root, name, tiny, write):
    """The folder of a model, which write(folder) fills on first use: whole or not at all."""
    folder = os.path.join(root, ("tiny-" if tiny else "") + name)
    if os.path.exists(folder):
        return folder
    partial = folder + ".partial"
    shutil.rmtree(partial, ignore_errors=True)
    os.makedirs(partial)
    write(partial)
    os.rename(partial, folder)
    return folder


def recipe(method, *models, **more):
    """Puts a function into the table under its own name."""

    def add(function):
        return add_recipe(function.__name__, function, method, *models, **more)

    return add


def add_recipe(name, function, method, *models, **more):
    more.setdefault("about", " ".join((function.__doc__ or "").split()))
    assert name not in RECIPES, name
    RECIPES[name] = Recipe(function, method, models, **more)
    if RECIPES[name].variables == FIXED_HEAP and RECIPES[name].framework in DEFAULT_HEAPS:
        about = more["about"].replace(", fixed mmap threshold", "").replace("; fixed mmap threshold", "")
        reason = "in some runs glibc's heap finds each hole again, and stays near the fixed figure"
        by_default = more | {"variables": (), "raced": False, "about": f"{about}; glibc as it is", "reason": reason}
        RECIPES[name + "_default"] = Recipe(function, method, models, **by_default)
    return function


# framework: (module, package)
PACKAGES = {name: (name, name) for name in ("torch", "transformers", "accelerate", "safetensors", "fastsafetensors")}
PACKAGES |= {"runai-model-streamer": ("runai_model_streamer", "runai-model-streamer"), "llama.cpp": ("xllamacpp", "xllamacpp")}
PACKAGES |= {name: (name, name) for name in ("onnxruntime", "numpy", "executorch", "openvino", "peft", "bitsandbytes", "torchao")} | {"LiteRT": ("ai_edge_litert", "ai-edge-litert")}


def versions():
    """Of the frameworks that this process has loaded."""
    import importlib.metadata as metadata
    import sys

    return {name: metadata.version(package).split("+")[0] for name, (module, package) in PACKAGES.items() if module in sys.modules}


def config_of(model):
    from transformers import AutoConfig

    return AutoConfig.from_pretrained(model)


def dtype_of(model):
    """The type of the weights."""
    import torch

    with open(os.path.join(model, "config.json")) as file:
        return getattr(torch, json.load(file)["torch_dtype"])


def build(model):
    """Model(config), in the type of the weights."""
    import torch
    from transformers import AutoModelForCausalLM

    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype_of(model))
    try:
        return AutoModelForCausalLM.from_config(config_of(model))
    finally:
        torch.set_default_dtype(before)


def build_meta(model):
    """The same without memory for the weights."""
    import torch

    with torch.device("meta"):
        return build(model)


def files_of(model, kind):
    return sorted(glob.glob(os.path.join(model, f"*.{kind}")))


def file_of(model, kind):
    (file,) = files_of(model, kind)
    return file


def part_of(model, share):
    """Bytes: a share of the files of a model."""
    import harness

    return int(share * harness.file_bytes(model))


def one_token(net):
    """A forward pass of one token: all weights of a decoder are touched but for the embedding."""
    import torch

    with torch.no_grad():
        net(input_ids=torch.tensor([[1]]))
    return net


if __name__ == "__main__":  # what has to be installed in folders of their own
    for folder, requirement in ENVIRONMENTS.items():
        print(folder, requirement)
else:
    import importlib

    for _family in ("torch", "safetensors", "transformers", "accelerate", "streamers", "llama_cpp", "runtimes", "packed"):
        if os.path.exists(os.path.join(os.path.dirname(os.path.abspath(__file__)), f"recipes_{_family}.py")):
            importlib.import_module(f"recipes_{_family}")
