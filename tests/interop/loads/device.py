"""A device for machines that have none: tensors in shared memory, which the kernel counts by itself."""

import torch


def _shared(nbytes):
    return torch.UntypedStorage._new_shared(nbytes)


def map_location(storage, _location):
    """For torch.load: the storage's copy on the device."""
    moved = _shared(storage.nbytes())
    moved.copy_(storage)
    return moved


def empty_like(tensor):
    made = torch.empty(0, dtype=tensor.dtype)
    made.set_(_shared(tensor.nbytes), 0, tensor.shape)
    return made


def move(tensor):
    """The tensor's copy on the device; a tensor of the device stays where it is."""
    if tensor.is_meta:  # a buffer that no file holds
        return empty_like(tensor)
    if tensor.is_shared():
        return tensor
    moved = empty_like(tensor)
    moved.copy_(tensor)
    return moved


def move_model(model):
    """Module.to(device): Module's own loop over parameters and buffers, which frees each source in turn."""
    return model._apply(move)


def empty_model(model):
    """Module.to_empty(device) of a model on the meta device."""
    return model._apply(empty_like)


def fill_buffers(model):
    """Buffers that no file holds and that are still on the meta device: zeros on the host."""
    return model._apply(lambda tensor: torch.zeros_like(tensor, device="cpu") if tensor.is_meta else tensor)


_BUFFERS = {}


def own_buffers(framework):
    """fastsafetensors allocates the buffers of its files on the device."""
    from fastsafetensors import cpp

    def allocate(self, length, _device):
        storage = _shared(length)
        _BUFFERS[storage.data_ptr()] = storage
        self.mem_used += length
        return cpp.gds_device_buffer(storage.data_ptr(), length, False)

    def free(self, buffer, _device):
        del _BUFFERS[buffer.get_base_address()]
        self.mem_used -= buffer.get_length()

    framework.alloc_tensor_memory, framework.free_tensor_memory = allocate, free
