"""Random checkpoints of several hundred MB, in the layouts that people have on their disks.

A name is FAMILY-TIES.LAYOUT, such as `llama-untied.shards-bin`. Each is a folder with config.json."""

import json
import os

import torch
from recipes import folder_once

PARTS = 6
CONTEXT = 512  # small as the models are: older versions keep a mask of its square, which no file holds
SUFFIX = {"bin": "pytorch_model", "safetensors": "model"}


def _llama(layers, tied, hidden=1536, vocabulary=40960, heads=12):
    from transformers import LlamaConfig

    return LlamaConfig(hidden_size=hidden, intermediate_size=hidden * 8 // 3, num_hidden_layers=layers,
                       num_attention_heads=heads, num_key_value_heads=heads, vocab_size=vocabulary,
                       max_position_embeddings=CONTEXT, tie_word_embeddings=tied, pad_token_id=0)


def _gpt2(layers, hidden=1280, vocabulary=50257):
    from transformers import GPT2Config

    return GPT2Config(n_embd=hidden, n_layer=layers, n_head=20, vocab_size=vocabulary)


def _mixtral(layers, hidden=1024, vocabulary=32000):
    from transformers import MixtralConfig

    return MixtralConfig(hidden_size=hidden, intermediate_size=hidden * 2, num_hidden_layers=layers,
                         num_attention_heads=16, num_key_value_heads=4, num_local_experts=8, vocab_size=vocabulary,
                         max_position_embeddings=CONTEXT,
                         tie_word_embeddings=False)


# family: (the config of the model, of a tiny one for warming up, the weights' type)
FAMILIES = {
    "llama-untied": (lambda: _llama(12, False), lambda: _llama(2, False, 96, 512), torch.bfloat16),
    "llama-tied": (lambda: _llama(8, True), lambda: _llama(2, True, 96, 512), torch.bfloat16),
    "llama-small-untied": (lambda: _llama(8, False, 1024, 32000, 8), lambda: _llama(2, False, 96, 512), torch.bfloat16),
    "llama-small-tied": (lambda: _llama(8, True, 1024, 32000, 8), lambda: _llama(2, True, 96, 512), torch.bfloat16),
    "llama-small-named": (lambda: _llama(4, False, 1024, 32000, 8), lambda: _llama(2, False, 96, 512), torch.float32),
    "gpt2": (lambda: _gpt2(12), lambda: _gpt2(2, 160, 512), torch.float16),
    "mixtral": (lambda: _mixtral(6), lambda: _mixtral(2, 64, 512), torch.bfloat16),
}
# the type in config.json, where it is not that of the weights
NAMED_TYPES = {"llama-small-named": torch.bfloat16}


def _tensors(config, dtype):
    """Random tensors by name, as checkpoints on the hub name and shape them; tied names share storage."""
    from transformers import AutoModelForCausalLM

    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, dtype=dtype)
    generator = torch.Generator().manual_seed(1)
    made, tensors = {}, {}
    for name, meta in model.state_dict(keep_vars=True).items():
        if id(meta) not in made:
            made[id(meta)] = torch.randn(meta.shape, generator=generator).mul_(0.02).to(dtype)
        tensors[name] = made[id(meta)]
    return dict(_as_stored(tensors))


GATE_UP, DOWN = ".mlp.experts.gate_up_proj", ".mlp.experts.down_proj"


def _as_stored(tensors):
    """transformers 5 holds all experts of a layer in one tensor; files hold each expert's matrices."""
    for name, tensor in tensors.items():
        if name.endswith(DOWN):
            continue  # with its partner
        if not name.endswith(GATE_UP):
            yield name.replace(".mlp.gate.", ".block_sparse_moe.gate."), tensor
            continue
        layer = name.removesuffix(GATE_UP)
        for expert, (both, down) in enumerate(zip(tensor, tensors[layer + DOWN])):
            gate, up = both.chunk(2)
            for part, matrix in (("w1", gate), ("w2", down), ("w3", up)):
                yield f"{layer}.block_sparse_moe.experts.{expert}.{part}.weight", matrix.clone()


def _parts(tensors, count):
    """Consecutive tensors of about equal size; tied names stay together."""
    total = sum({t.untyped_storage().data_ptr(): t.nbytes for t in tensors.values()}.values())
    parts, filled, home = [{}], 0, {}
    for name, tensor in tensors.items():
        key = tensor.untyped_storage().data_ptr()
        if key in home:
            home[key][name] = tensor
            continue
        if filled >= total * len(parts) / count and len(parts) < count:
            parts.append({})
        parts[-1][name] = tensor
        home[key] = parts[-1]
        filled += tensor.nbytes
    return parts


def _save(tensors, path, kind):
    if kind == "bin":
        torch.save(tensors, path)
        return
    from safetensors.torch import save_file

    single = {}
    seen = set()
    for name, tensor in tensors.items():  # a format without ties: each storage once
        if tensor.untyped_storage().data_ptr() not in seen:
            seen.add(tensor.untyped_storage().data_ptr())
            single[name] = tensor.contiguous()
    save_file(single, path, metadata={"format": "pt"})


LORA = {"lora-": ("q_proj", "v_proj"), "lora-all-": ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")}
RANK = 16


def _write_adapter(folder, tensors, targets):
    """An adapter of peft for the linear layers with these names, in F32 as trainers save it."""
    from safetensors.torch import save_file

    generator = torch.Generator().manual_seed(2)
    state = {}
    for name, tensor in tensors.items():
        module = name.removesuffix(".weight")
        if module.split(".")[-1] in targets:
            for part, shape in (("A", (RANK, tensor.shape[1])), ("B", (tensor.shape[0], RANK))):
                state[f"base_model.model.{module}.lora_{part}.weight"] = torch.randn(shape, generator=generator).mul_(0.02)
    os.makedirs(folder)
    save_file(state, os.path.join(folder, "adapter_model.safetensors"), metadata={"format": "pt"})
    with open(os.path.join(folder, "adapter_config.json"), "w") as file:
        json.dump({"peft_type": "LORA", "task_type": "CAUSAL_LM", "r": RANK, "lora_alpha": 2 * RANK, "lora_dropout": 0.0, "bias": "none",
                   "target_modules": list(targets), "inference_mode": True}, file, indent=2)


def _write(folder, config, dtype, layout, named):
    adapted = next((prefix for prefix in reversed(LORA) if layout.startswith(prefix)), "")
    kind = layout.removeprefix(adapted).removeprefix("shards-")
    stem = SUFFIX[kind]
    tensors = _tensors(config, dtype)
    if adapted:
        _write_adapter(os.path.join(folder, "adapter"), tensors, LORA[adapted])
    config.dtype = named
    config.architectures = [type(config).__name__.replace("Config", "LMHeadModel" if "GPT2" in type(config).__name__ else "ForCausalLM")]
    config.save_pretrained(folder)
    with open(os.path.join(folder, "config.json")) as file:
        stored = json.load(file)
    stored["torch_dtype"] = stored.get("dtype") or str(named).removeprefix("torch.")  # as older versions call it
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump(stored, file, indent=2)
    if not layout.startswith("shards-"):
        _save(tensors, os.path.join(folder, f"{stem}.{kind}"), kind)
        return
    parts = _parts(tensors, PARTS)
    names, total = {}, 0
    for number, part in enumerate(parts, 1):
        file = f"{stem}-{number:05}-of-{len(parts):05}.{kind}"
        _save(part, os.path.join(folder, file), kind)
        names.update(dict.fromkeys(part, file))
        total += sum({t.untyped_storage().data_ptr(): t.nbytes for t in part.values()}.values())
    index = {"metadata": {"total_size": total}, "weight_map": names}
    with open(os.path.join(folder, f"{stem}.{kind}.index.json"), "w") as file:
        json.dump(index, file)


def make(root, name, tiny=False):
    """The folder of a checkpoint; written on first use, whole or not at all."""
    family, layout = name.split(".")
    config, small, dtype = FAMILIES[family]
    return folder_once(root, name, tiny, lambda folder: _write(folder, (small if tiny else config)(), dtype, layout, NAMED_TYPES.get(family, dtype)))


if __name__ == "__main__":
    import sys

    for asked in sys.argv[2:]:
        print(make(sys.argv[1], asked.removeprefix("tiny-"), asked.startswith("tiny-")))
