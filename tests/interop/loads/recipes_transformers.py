"""transformers' from_pretrained(), in its fifth version and in two of the fourth."""

from recipes import ENVIRONMENTS, FIXED_HEAP, add_recipe, dtype_of, one_token, part_of, recipe

SHARDS, ONE, TIED = "llama-untied.shards-safetensors", "llama-untied.safetensors", "llama-tied.safetensors"
BIN_SHARDS, BIN = "llama-untied.shards-bin", "llama-untied.bin"
GPT2, MIXTRAL, MIXTRAL_SHARDS = "gpt2.safetensors", "mixtral.safetensors", "mixtral.shards-safetensors"
ON_HOST = ("--place", "*=host")
ONE_TOKEN = ("--seq", "1")
CAST = ("--cast", "f32")


def _load(model, dtype=None, **more):
    import transformers

    kind = "dtype" if transformers.__version__ >= "5" else "torch_dtype"
    return transformers.AutoModelForCausalLM.from_pretrained(model, **{kind: dtype or dtype_of(model)}, **more)


@recipe("transformers_v5_to", SHARDS, ONE, TIED, GPT2, BIN_SHARDS, framework="transformers")
def transformers_v5_to(model):
    """from_pretrained(), then .to(device)"""
    import device

    return device.move_model(_load(model))


@recipe("transformers_v5_to", MIXTRAL, framework="transformers")
def transformers_v5_to_experts(model):
    """from_pretrained() gathers experts on the CPU, then .to(device)"""
    import device

    return device.move_model(_load(model))


@recipe("transformers_v5", SHARDS, TIED, MIXTRAL, framework="transformers", flags=ON_HOST)
def transformers_v5_cpu(model):
    """from_pretrained() on the CPU"""
    return _load(model)


@recipe("transformers_v5", SHARDS, TIED, MIXTRAL, framework="transformers", flags=(*ON_HOST, *ONE_TOKEN))
def transformers_v5_cpu_then_run(model):
    """from_pretrained() on the CPU, then one token"""
    return one_token(_load(model))


@recipe("transformers_v5", SHARDS, TIED, framework="transformers", flags=(*ON_HOST, *CAST))
def transformers_v5_cpu_cast(model):
    """from_pretrained(dtype=float32) on the CPU"""
    import torch

    return _load(model, torch.float32)


@recipe("transformers_v5", SHARDS, MIXTRAL, framework="transformers")
def transformers_v5_device(model):
    """from_pretrained(device_map=device)"""
    import backend

    backend.install()
    return _load(model, device_map={"": 0})


DEVICE_SHARE = 0.4


def _auto(model, **more):
    import backend
    import transformers.integrations.accelerate as inner

    backend.install()
    backend.believe_max_memory(inner)
    return _load(model, device_map="auto", max_memory={0: part_of(model, DEVICE_SHARE), "cpu": part_of(model, 1)}, **more)


@recipe("transformers_v5", SHARDS, TIED, framework="transformers",
        flags=lambda model: ("--auto-map", f"{part_of(model, DEVICE_SHARE)},{part_of(model, 1)}"))
def transformers_v5_auto(model):
    """from_pretrained(device_map='auto'), 40 % on the device"""
    return _auto(model)


def _cast_by(workers):
    def run(model):
        import backend
        import torch
        import transformers.core_model_loading as loading

        backend.install()
        loading.GLOBAL_WORKERS = workers  # its only knob: a constant of the module
        return _load(model, torch.float32, device_map={"": 0})

    run.__doc__ = f"from_pretrained(device_map=device, dtype=float32), {workers} threads, fixed mmap threshold"
    return run


for _workers in (1, 2, 4):
    add_recipe(f"transformers_v5_cast_{_workers}", _cast_by(_workers), "transformers_v5", SHARDS, *((TIED,) if _workers > 1 else ()),
               framework="transformers", flags=(*CAST, "--workers", str(_workers)), variables=FIXED_HEAP, raced=_workers > 1)


@recipe("transformers_v5", "llama-small-named.shards-safetensors", framework="transformers", flags=("--workers", "1"), variables=FIXED_HEAP)
def transformers_v5_named_type(model):
    """from_pretrained(device_map=device) without a dtype: F32 weights become BF16, the type in config.json"""
    import backend
    import transformers
    import transformers.core_model_loading as loading

    backend.install()
    loading.GLOBAL_WORKERS = 1
    return transformers.AutoModelForCausalLM.from_pretrained(model, device_map={"": 0})


@recipe("transformers_v5", MIXTRAL, framework="transformers", flags=(*ON_HOST, *CAST), variables=FIXED_HEAP)
def transformers_v5_cpu_cast_experts(model):
    """from_pretrained(dtype=float32) on the CPU, experts gathered; fixed mmap threshold"""
    import torch

    return _load(model, torch.float32)


def _v4_to(model):
    """from_pretrained(torch_dtype=the weights' own), then .to(device)"""
    import device

    return device.move_model(_load(model))


def _v4_to_cast(model):
    """from_pretrained(torch_dtype=float32), then .to(device)"""
    import device
    import torch

    return device.move_model(_load(model, torch.float32))


def _v4_device(model):
    """from_pretrained(torch_dtype=the weights' own, device_map=device)"""
    import backend

    backend.install()
    return _load(model, device_map={"": 0})


def _v4_cpu(model):
    """from_pretrained(torch_dtype=the weights' own) on the CPU"""
    return _load(model)


def _v4_cpu_then_run(model):
    """from_pretrained(torch_dtype=the weights' own) on the CPU, then one token"""
    return one_token(_load(model))


def _v4_low_to(model):
    """from_pretrained(torch_dtype=the weights' own, low_cpu_mem_usage=True), then .to(device)"""
    import device

    return device.move_model(_load(model, low_cpu_mem_usage=True))


def _own_type(*more):
    """transformers 4 loads in F32 unless it is told another type."""
    return lambda model: ("--cast", str(dtype_of(model)).removeprefix("torch."), *more)


for _folder, _method in zip(ENVIRONMENTS, ("transformers_v4", "transformers_v4_early")):
    _name = _folder.replace("-", "_")
    _more = {"framework": "transformers", "environment": _folder}
    add_recipe(f"{_name}_to", _v4_to, _method, SHARDS, ONE, TIED, GPT2, BIN_SHARDS, BIN, "llama-tied.bin", MIXTRAL_SHARDS, MIXTRAL,
               flags=_own_type(), reason="the model has buffers that no file holds, such as GPT-2's causal masks", **_more)
    add_recipe(f"{_name}_to_cast", _v4_to_cast, _method, SHARDS, BIN_SHARDS, flags=CAST, **_more)
    add_recipe(f"{_name}_device", _v4_device, "transformers_v4", SHARDS, BIN_SHARDS, flags=_own_type(), **_more)
    add_recipe(f"{_name}_cpu", _v4_cpu, _method, SHARDS, BIN_SHARDS, flags=_own_type(*ON_HOST), **_more)
    add_recipe(f"{_name}_cpu_then_run", _v4_cpu_then_run, _method, SHARDS, TIED, flags=_own_type(*ON_HOST, *ONE_TOKEN), **_more)
add_recipe("transformers_4.38.2_low_to", _v4_low_to, "transformers_v4", SHARDS, BIN_SHARDS, flags=_own_type(),
           framework="transformers", environment="transformers-4.38.2")
