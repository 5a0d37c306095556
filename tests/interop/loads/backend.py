"""A device of torch for machines that have none: index 0, tensors in shared memory, which the kernel counts by
itself. Frameworks load onto it through their own paths for devices: device_map, Module.to, Tensor.to.

It is a backend of torch written in Python (PrivateUse1). A tensor of it holds no memory of torch; its storage
carries a tensor of the host that lies in shared memory. As on CUDA, a copy from the host that
changes the type casts on the host first."""

import math

import torch
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

NAME = "simulated"
VIEWS = ("detach", "view", "view.dtype", "alias", "slice.Tensor", "as_strided", "unsqueeze", "select.int", "t", "transpose.int",
         "_reshape_alias", "expand")


class DeviceTensor(torch.Tensor):
    __torch_function__ = torch._C._disabled_torch_function_impl


def _wrap(memory):
    made = torch._C._acc.create_empty_tensor(memory.shape, memory.dtype)
    made.__class__ = DeviceTensor
    made.untyped_storage().memory = memory
    return made


def _memory(tensor):
    return tensor.untyped_storage().memory if tensor.device.type == NAME else tensor


def _allocate(size, dtype):
    memory = torch.empty(0, dtype=dtype)
    return memory.set_(torch.UntypedStorage._new_shared(max(1, math.prod(size) * dtype.itemsize)), 0, tuple(size))


def _empty(size, *_, dtype=None, **_more):
    return _wrap(_allocate(size, dtype or torch.get_default_dtype()))


def _copy_from(source, target, _non_blocking=False):
    if source.device.type != NAME:
        source = source.to(target.dtype)
    _memory(target).copy_(_memory(source))
    return target


def _cat(tensors, dim=0):
    parts = [_memory(tensor) for tensor in tensors]
    size = list(parts[0].shape)
    size[dim] = sum(part.shape[dim] for part in parts)
    return _wrap(torch.cat(parts, dim, out=_allocate(size, parts[0].dtype)))


def _stack(tensors, dim=0):
    parts = [_memory(tensor) for tensor in tensors]
    size = list(parts[0].shape)
    size.insert(dim, len(parts))
    return _wrap(torch.stack(parts, dim, out=_allocate(size, parts[0].dtype)))


def _view(name):
    packet, _, overload = name.partition(".")
    operator = getattr(getattr(torch.ops.aten, packet), overload or "default")
    return lambda tensor, *more, **options: _wrap(operator(_memory(tensor), *more, **options))


_installed = False


def install():
    """Once per process; the device is 0 afterwards."""
    global _installed
    if _installed:
        return
    _installed = True
    _setup_privateuseone_for_python_backend(NAME)
    operators = {"empty.memory_format": _empty, "empty_strided": _empty, "_copy_from": _copy_from, "cat": _cat, "stack": _stack}
    operators |= {name: _view(name) for name in VIEWS}
    for name, function in operators.items():
        torch.library.impl(f"aten::{name}", "privateuseone")(function)


def believe_max_memory(*modules):
    """accelerate and transformers count a device's memory only if they know its kind: here they are told."""
    for module in modules:
        module.get_max_memory = lambda max_memory=None: max_memory
