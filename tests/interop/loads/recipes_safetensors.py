"""Loads with the safetensors package."""

from recipes import build, build_meta, file_of, files_of, recipe


@recipe("mmap_assign", "llama-untied.safetensors", "llama-untied.shards-safetensors", framework="safetensors")
def load_file_assign(model):
    """safetensors.torch.load_file and assign=True"""
    import device
    from safetensors.torch import load_file

    net = build_meta(model)
    for shard in files_of(model, "safetensors"):
        net.load_state_dict(load_file(shard), assign=True, strict=False)
    return device.move_model(net)


@recipe("mmap_copy", "llama-untied.shards-safetensors", "llama-tied.safetensors", "gpt2.safetensors", framework="safetensors")
def load_model(model):
    """safetensors.torch.load_model into a model on the host"""
    import device
    from safetensors.torch import load_model as load

    net = build(model)
    for shard in files_of(model, "safetensors"):
        load(net, shard, strict=False)
    return device.move_model(net)


@recipe("mmap_copy", "llama-untied.shards-safetensors", framework="safetensors")
def safe_open_loop(model):
    """safe_open, get_tensor and copy_ into a model on the host"""
    import device
    import torch
    from safetensors import safe_open

    net = build(model)
    parameters = dict(net.named_parameters())
    with torch.no_grad():
        for shard in files_of(model, "safetensors"):
            with safe_open(shard, "pt") as file:
                for name in file.keys():
                    parameters[name].copy_(file.get_tensor(name))
    return device.move_model(net)


@recipe("safetensors_bytes", "llama-untied.safetensors", "llama-tied.safetensors", framework="safetensors")
def load_bytes(model):
    """safetensors.torch.load(open(file, 'rb').read())"""
    import device
    from safetensors.torch import load

    with open(file_of(model, "safetensors"), "rb") as file:
        state = load(file.read())
    net = build_meta(model)
    net.load_state_dict(state, assign=True, strict=False)
    net.tie_weights()
    del state
    return device.move_model(net)
