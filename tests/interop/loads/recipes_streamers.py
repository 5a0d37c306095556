"""fastsafetensors and the Run:ai model streamer."""

import os

from recipes import build_meta, dtype_of, files_of, recipe

SHARDS, TIED = "llama-untied.shards-safetensors", "llama-tied.safetensors"
BOUNCE = ("--staging", "16MiB", "--slots", "1")  # its default: one buffer is touched


def _fast_loader(files):
    import device
    import fastsafetensors
    from fastsafetensors.frameworks import get_framework_op

    device.own_buffers(type(get_framework_op("pytorch")))
    loader = fastsafetensors.SafeTensorsFileLoader(None, device="cpu", nogds=True)
    loader.add_filenames({0: files})
    return loader


@recipe("fastsafetensors", SHARDS, TIED, framework="fastsafetensors", flags=BOUNCE)
def fastsafetensors_views(model):
    """all files to the device, parameters as views into them"""
    loader = _fast_loader(files_of(model, "safetensors"))
    buffers = loader.copy_files_to_device()
    state = {name: buffers.get_tensor(name) for name in loader.get_keys()}
    net = build_meta(model)
    net.load_state_dict(state, assign=True, strict=False)
    net.tie_weights()
    return net, buffers, loader


def _copy(net, loader, buffers):
    import torch

    parameters = dict(net.named_parameters(remove_duplicate=False))
    with torch.no_grad():
        for name in loader.get_keys():
            parameters[name].copy_(buffers.get_tensor(name))


@recipe("fastsafetensors_all", SHARDS, framework="fastsafetensors", flags=BOUNCE)
def fastsafetensors_all(model):
    """all files to the device, copied into a model there"""
    import device

    net = device.empty_model(build_meta(model))
    loader = _fast_loader(files_of(model, "safetensors"))
    buffers = loader.copy_files_to_device()
    _copy(net, loader, buffers)
    buffers.close()
    return net


@recipe("fastsafetensors_copy", SHARDS, framework="fastsafetensors", flags=BOUNCE)
def fastsafetensors_copy_by_file(model):
    """file by file to the device, copied into a model there"""
    import device

    net = device.empty_model(build_meta(model))
    for file in files_of(model, "safetensors"):
        loader = _fast_loader([file])
        buffers = loader.copy_files_to_device()
        _copy(net, loader, buffers)
        buffers.close()
        loader.close()
    return net


def _stream(model):
    import device
    import torch
    from runai_model_streamer import SafetensorsStreamer

    net = device.empty_model(build_meta(model))
    parameters = dict(net.named_parameters(remove_duplicate=False))
    with SafetensorsStreamer() as streamer, torch.no_grad():
        streamer.stream_files(files_of(model, "safetensors"))
        for name, tensor in streamer.get_tensors():
            parameters[name].copy_(tensor)
    return net


@recipe("runai", SHARDS, framework="runai-model-streamer", flags=("--runai-buffer", "300MB"),
        variables=(("RUNAI_STREAMER_MEMORY_LIMIT", "300000000"),))
def runai_300mb(model):
    """SafetensorsStreamer with a limit of 300 MB"""
    return _stream(model)


@recipe("runai", SHARDS, framework="runai-model-streamer", flags=("--runai-buffer", "0"),
        variables=(("RUNAI_STREAMER_MEMORY_LIMIT", "0"),))
def runai_0(model):
    """SafetensorsStreamer with the smallest buffer"""
    return _stream(model)


@recipe("runai", SHARDS, framework="runai-model-streamer")
def runai(model):
    """SafetensorsStreamer with its default limit"""
    return _stream(model)
