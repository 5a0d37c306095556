"""accelerate's load_checkpoint_and_dispatch()."""

import os

from recipes import FIXED_HEAP, config_of, dtype_of, one_token, part_of, recipe

SHARDS, BIN_SHARDS, TIED = "llama-untied.shards-safetensors", "llama-untied.shards-bin", "llama-tied.safetensors"


def _dispatch(model, device_map, **more):
    from accelerate import init_empty_weights, load_checkpoint_and_dispatch
    from transformers import AutoModelForCausalLM

    with init_empty_weights():
        net = AutoModelForCausalLM.from_config(config_of(model), dtype=dtype_of(model))
    net.tie_weights()
    return load_checkpoint_and_dispatch(net, model, device_map=device_map, **more)


@recipe("accelerate", SHARDS, BIN_SHARDS, TIED, flags=("--place", "*=host"), framework="accelerate")
def accelerate_cpu(model):
    """load_checkpoint_and_dispatch(device_map={'': 'cpu'})"""
    return _dispatch(model, {"": "cpu"})


@recipe("accelerate", SHARDS, BIN_SHARDS, flags=("--place", "*=host", "--seq", "1"), framework="accelerate")
def accelerate_cpu_then_run(model):
    """the same, then one token"""
    return one_token(_dispatch(model, {"": "cpu"}))


@recipe("accelerate", SHARDS, flags=("--place", "*=host", "--cast", "f32"), framework="accelerate")
def accelerate_cpu_cast(model):
    """load_checkpoint_and_dispatch(device_map={'': 'cpu'}, dtype=float32)"""
    return _dispatch(model, {"": "cpu"}, dtype="float32")


def _offloaded(model, device_map, **more):
    import tempfile

    folder = tempfile.TemporaryDirectory(dir=os.path.dirname(model))
    return _dispatch(model, device_map, offload_folder=folder.name, **more), folder


@recipe("accelerate", BIN_SHARDS, flags=("--place", "*=disk"), variables=FIXED_HEAP, framework="accelerate")
def accelerate_disk(model):
    """load_checkpoint_and_dispatch(device_map={'': 'disk'}, offload_folder=...), fixed mmap threshold"""
    return _offloaded(model, {"": "disk"})


@recipe("accelerate", SHARDS, BIN_SHARDS, variables=FIXED_HEAP, framework="accelerate")
def accelerate_device(model):
    """load_checkpoint_and_dispatch(device_map={'': device}), fixed mmap threshold"""
    import backend

    backend.install()
    return _dispatch(model, {"": 0})


@recipe("accelerate", SHARDS, BIN_SHARDS, flags=("--cast", "f32"), variables=FIXED_HEAP, framework="accelerate")
def accelerate_device_cast(model):
    """load_checkpoint_and_dispatch(device_map={'': device}, dtype=float32), fixed mmap threshold"""
    import backend

    backend.install()
    return _dispatch(model, {"": 0}, dtype="float32")


def _room(model, share):
    return part_of(model, share) + (1 << 18)  # the tiny model needs some more


def _auto(model, device, host, run=_dispatch):
    import accelerate.utils.modeling as inner
    import backend

    backend.install()
    backend.believe_max_memory(inner)
    room = {0: _room(model, device), "cpu": _room(model, host)}
    return run(model, "auto", max_memory=room, no_split_module_classes=["LlamaDecoderLayer"])


@recipe("accelerate", SHARDS, BIN_SHARDS, TIED, framework="accelerate", variables=FIXED_HEAP,
        flags=lambda model: ("--auto-map", f"{_room(model, 0.4)},{_room(model, 1)}"))
def accelerate_auto(model):
    """load_checkpoint_and_dispatch(device_map='auto'), 40 % on the device; fixed mmap threshold"""
    return _auto(model, 0.4, 1)


@recipe("accelerate", SHARDS, BIN_SHARDS, framework="accelerate", variables=FIXED_HEAP,
        flags=lambda model: ("--auto-map", f"{_room(model, 0.4)},{_room(model, 0.4)}"))
def accelerate_auto_disk(model):
    """the same, 40 % on the device, 40 % on the CPU, the rest on disk"""
    return _auto(model, 0.4, 0.4, _offloaded)
