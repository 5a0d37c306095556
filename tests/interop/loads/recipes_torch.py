"""Loads with torch alone: what its tutorials say and what people make of them."""

from recipes import FIXED_HEAP, build, build_meta, file_of, files_of, one_token, recipe

BINS = ("llama-untied.bin", "llama-tied.bin", "gpt2.bin")
SHARDS = ("llama-untied.shards-bin",)


@recipe("to_device", *BINS)
def plain(model):
    """torch: Saving and Loading Models, then model.to(device)"""
    import device
    import torch

    net = build(model)
    state = torch.load(file_of(model, "bin"))
    net.load_state_dict(state)
    return device.move_model(net), state


@recipe("to_device", "llama-untied.bin", flags=("--place", "*=host", "--seq", "1"))
def plain_cpu(model):
    """the same on the CPU, then one token"""
    import torch

    net = build(model)
    net.load_state_dict(torch.load(file_of(model, "bin")))
    return one_token(net)


@recipe("shard_by_shard", *SHARDS)
def plain_by_shard(model):
    """the same, a shard's state dict at a time"""
    import device
    import torch

    net = build(model)
    for shard in files_of(model, "bin"):
        state = torch.load(shard)
        net.load_state_dict(state, strict=False)
        del state
    return device.move_model(net)


@recipe("meta_assign", *BINS)
def meta_assign(model):
    """torch: Tips for loading an nn.Module, meta device and assign=True"""
    import device
    import torch

    net = build_meta(model)
    net.load_state_dict(torch.load(file_of(model, "bin")), assign=True)
    net.tie_weights()
    return device.move_model(net)


@recipe("state_dict", *BINS)
def state_dict_on_the_device(model):
    """model on the device, then load_state_dict(torch.load(map_location=device))"""
    import device
    import torch

    net = device.move_model(build(model))
    net.load_state_dict(torch.load(file_of(model, "bin"), map_location=device.map_location))
    return net


@recipe("sequential", *BINS)
def sequential(model):
    """state dict on the host, moved parameter by parameter"""
    import device
    import torch

    net = device.move_model(build(model))
    state = torch.load(file_of(model, "bin"))
    with torch.no_grad():
        for name, parameter in net.named_parameters():
            parameter.copy_(device.move(state[name]))
    return net


def _map_location(model):
    import device
    import torch

    net = device.empty_model(build_meta(model))
    net.load_state_dict(torch.load(file_of(model, "bin"), map_location=device.map_location))
    return net


@recipe("meta_map_location", *BINS, variables=FIXED_HEAP)
def meta_map_location(model):
    """empty model on the device, state dict beside it; fixed mmap threshold"""
    return _map_location(model)


@recipe("mmap_assign", *BINS, *SHARDS)
def mmap_assign(model):
    """torch: Tips for loading an nn.Module, mmap=True and assign=True"""
    import device
    import torch

    net = build_meta(model)
    for shard in files_of(model, "bin"):
        net.load_state_dict(torch.load(shard, mmap=True), assign=True, strict=False)
    net.tie_weights()
    return device.move_model(net)


@recipe("mmap_assign", *SHARDS, flags=("--place", "*=host", "--seq", "1"))
def mmap_assign_cpu(model):
    """the same on the CPU, then one token"""
    import torch

    net = build_meta(model)
    for shard in files_of(model, "bin"):
        net.load_state_dict(torch.load(shard, mmap=True), assign=True, strict=False)
    import device

    device.fill_buffers(net)
    return one_token(net)


@recipe("mmap_copy", *BINS)
def mmap_copy(model):
    """torch.load(mmap=True) copied into a model on the host"""
    import device
    import torch

    net = build(model)
    net.load_state_dict(torch.load(file_of(model, "bin"), mmap=True))
    return device.move_model(net)


@recipe("mmap_state_dict", "llama-untied.bin", "llama-tied.bin")
def mmap_state_dict(model):
    """torch.load(mmap=True, map_location=device) beside the model there"""
    import device
    import torch

    net = device.move_model(build(model))
    net.load_state_dict(torch.load(file_of(model, "bin"), mmap=True, map_location=device.map_location))
    return net
