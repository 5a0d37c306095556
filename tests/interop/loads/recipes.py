"""Loads as people write them, each with the method of Loadline that claims to be it.

A recipe gets a checkpoint's folder and returns what has to stay alive. Imports happen inside, so that the
module can be listed without any framework."""

import glob
import json
import os
from dataclasses import dataclass

RECIPES = {}


@dataclass(frozen=True)
class Recipe:
    run: object
    method: str  # the method that claims to be this load; empty: none does
    models: tuple  # checkpoints it runs on
    flags: tuple = ()  # of `loadline plan`
    framework: str = "torch"  # whose version decides
    environment: str = ""  # folder of packages in front of the others; empty: none
    about: str = ""


def recipe(method, *models, **more):
    def add(function):
        RECIPES[function.__name__] = Recipe(function, method, models, about=(function.__doc__ or "").strip(), **more)
        return function

    return add


def versions():
    import importlib.metadata as metadata
    import sys

    known = {}
    for package, module in (("torch", "torch"), ("transformers", "transformers"), ("accelerate", "accelerate"),
                            ("safetensors", "safetensors"), ("fastsafetensors", "fastsafetensors"),
                            ("runai-model-streamer", "runai_model_streamer"), ("xllamacpp", "xllamacpp")):
        if module in sys.modules:
            known[package] = metadata.version(package)
    return known


def _config(model):
    from transformers import AutoConfig

    return AutoConfig.from_pretrained(model)


def _dtype(model):
    import torch

    with open(os.path.join(model, "config.json")) as file:
        return getattr(torch, json.load(file)["torch_dtype"])


def _build(model):
    """Model(config), in the type of the weights."""
    import torch
    from transformers import AutoModelForCausalLM

    before = torch.get_default_dtype()
    torch.set_default_dtype(_dtype(model))
    try:
        return AutoModelForCausalLM.from_config(_config(model))
    finally:
        torch.set_default_dtype(before)


def _build_meta(model):
    import torch

    with torch.device("meta"):
        return _build(model)


def _files(model, kind):
    return sorted(glob.glob(os.path.join(model, f"*.{kind}")))


def _only(model, kind):
    (file,) = _files(model, kind)
    return file


BINS = ("llama-untied.bin", "llama-tied.bin", "gpt2.bin")
SHARDS = ("llama-untied.shards-bin",)


@recipe("to_device", *BINS)
def plain(model):
    """torch: Saving and Loading Models, then model.to(device)"""
    import device
    import torch

    net = _build(model)
    state = torch.load(_only(model, "bin"))
    net.load_state_dict(state)
    return device.move_model(net), state


@recipe("from_pretrained", *SHARDS)
def plain_by_shard(model):
    """the same, a shard's state dict at a time"""
    import device
    import torch

    net = _build(model)
    for shard in _files(model, "bin"):
        state = torch.load(shard)
        net.load_state_dict(state, strict=False)
        del state
    return device.move_model(net)


@recipe("to_device", "llama-untied.bin", "llama-tied.bin")
def meta_assign(model):
    """torch: Tips for loading an nn.Module, meta device and assign=True"""
    import device
    import torch

    net = _build_meta(model)
    net.load_state_dict(torch.load(_only(model, "bin")), assign=True)
    return device.move_model(net)


@recipe("state_dict", *BINS)
def state_dict_on_the_device(model):
    """model on the device, then load_state_dict(torch.load(map_location=device))"""
    import device
    import torch

    net = device.move_model(_build(model))
    net.load_state_dict(torch.load(_only(model, "bin"), map_location=device.map_location))
    return net


@recipe("sequential", "llama-untied.bin", "llama-tied.bin")
def sequential(model):
    """state dict on the host, moved parameter by parameter"""
    import device
    import torch

    net = device.move_model(_build(model))
    state = torch.load(_only(model, "bin"))
    with torch.no_grad():
        for name, parameter in net.named_parameters():
            parameter.copy_(device.move(state[name]))
    return net


@recipe("meta_map_location", "llama-untied.bin", "gpt2.bin")
def meta_map_location(model):
    """empty model on the device, state dict beside it"""
    import device
    import torch

    net = device.empty_model(_build_meta(model))
    net.load_state_dict(torch.load(_only(model, "bin"), map_location=device.map_location))
    return net


@recipe("mmap_assign", "llama-untied.bin", "llama-tied.bin", *SHARDS)
def mmap_assign(model):
    """torch: Tips for loading an nn.Module, mmap=True and assign=True"""
    import device
    import torch

    net = _build_meta(model)
    for shard in _files(model, "bin"):
        net.load_state_dict(torch.load(shard, mmap=True), assign=True, strict=False)
    return device.move_model(net)


@recipe("mmap_assign", "llama-untied.safetensors", "llama-untied.shards-safetensors")
def load_file_assign(model):
    """safetensors.torch.load_file and assign=True"""
    import device
    from safetensors.torch import load_file

    net = _build_meta(model)
    for shard in _files(model, "safetensors"):
        net.load_state_dict(load_file(shard), assign=True, strict=False)
    return device.move_model(net)


@recipe("mmap_copy", "llama-untied.bin", "llama-tied.bin")
def mmap_copy(model):
    """torch.load(mmap=True) copied into a model on the host"""
    import device
    import torch

    net = _build(model)
    net.load_state_dict(torch.load(_only(model, "bin"), mmap=True))
    return device.move_model(net)


@recipe("mmap_copy", "llama-untied.shards-safetensors", "llama-tied.safetensors")
def load_model(model):
    """safetensors.torch.load_model into a model on the host"""
    import device
    from safetensors.torch import load_model as load

    net = _build(model)
    for shard in _files(model, "safetensors"):
        load(net, shard, strict=False)
    return device.move_model(net)


@recipe("mmap_state_dict", "llama-untied.bin", "llama-tied.bin")
def mmap_state_dict(model):
    """torch.load(mmap=True, map_location=device) beside the model there"""
    import device
    import torch

    net = device.move_model(_build(model))
    net.load_state_dict(torch.load(_only(model, "bin"), mmap=True, map_location=device.map_location))
    return net


@recipe("mmap_copy", "llama-untied.shards-safetensors")
def safe_open_loop(model):
    """safe_open, get_tensor and copy_ into a model on the host"""
    import device
    import torch
    from safetensors import safe_open

    net = _build(model)
    parameters = dict(net.named_parameters())
    with torch.no_grad():
        for shard in _files(model, "safetensors"):
            with safe_open(shard, "pt") as file:
                for name in file.keys():
                    parameters[name].copy_(file.get_tensor(name))
    return device.move_model(net)


@recipe("", "llama-untied.safetensors")
def load_bytes(model):
    """safetensors.torch.load(open(file, 'rb').read())"""
    import device
    from safetensors.torch import load

    with open(_only(model, "safetensors"), "rb") as file:
        state = load(file.read())
    net = _build_meta(model)
    net.load_state_dict(state, assign=True, strict=False)
    del state
    return device.move_model(net)


V5 = ("llama-untied.shards-safetensors", "llama-untied.safetensors", "llama-tied.safetensors")


def _from_pretrained(model, dtype=None):
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(model, dtype=dtype or _dtype(model))


@recipe("transformers_v5", *V5, framework="transformers")
def transformers_v5_to(model):
    """from_pretrained(), then .to(device)"""
    import device

    return device.move_model(_from_pretrained(model))


@recipe("transformers_v5", *V5, "mixtral.safetensors", flags=("--place", "*=host"), framework="transformers")
def transformers_v5_cpu(model):
    """from_pretrained() on the CPU"""
    return _from_pretrained(model)


@recipe("transformers_v5", "llama-untied.shards-safetensors", flags=("--place", "*=host", "--cast", "f32"), framework="transformers")
def transformers_v5_cpu_cast(model):
    """from_pretrained(dtype=float32) on the CPU"""
    import torch

    return _from_pretrained(model, torch.float32)


def _v4_to(model):
    """from_pretrained(), then .to(device)"""
    import device
    from transformers import AutoModelForCausalLM

    return device.move_model(AutoModelForCausalLM.from_pretrained(model, torch_dtype=_dtype(model)))


OLDER_TRANSFORMERS = ("4.57.3", "4.38.2")
for _version in OLDER_TRANSFORMERS:
    RECIPES[f"transformers_{_version}_to"] = Recipe(
        _v4_to, "from_pretrained", ("llama-untied.shards-safetensors", "llama-untied.safetensors", "llama-tied.safetensors"),
        framework="transformers", environment=f"transformers-{_version}", about=_v4_to.__doc__)


def _dispatch(model, device_map, **more):
    from accelerate import init_empty_weights, load_checkpoint_and_dispatch
    from transformers import AutoModelForCausalLM

    with init_empty_weights():
        net = AutoModelForCausalLM.from_config(_config(model), dtype=_dtype(model))
    net.tie_weights()
    return load_checkpoint_and_dispatch(net, model, device_map=device_map, **more)


@recipe("accelerate", "llama-untied.shards-safetensors", "llama-untied.shards-bin", flags=("--place", "*=host"), framework="accelerate")
def accelerate_cpu(model):
    """load_checkpoint_and_dispatch(device_map={'': 'cpu'})"""
    return _dispatch(model, {"": "cpu"})


@recipe("accelerate", "llama-untied.shards-bin", flags=("--place", "*=disk"), framework="accelerate")
def accelerate_disk(model):
    """load_checkpoint_and_dispatch(device_map={'': 'disk'}, offload_folder=...)"""
    import tempfile

    folder = tempfile.TemporaryDirectory(dir=os.path.dirname(model))
    return _dispatch(model, {"": "disk"}, offload_folder=folder.name), folder


if __name__ == "__main__":  # what has to be installed in folders of their own
    print(*OLDER_TRANSFORMERS)
