"""The memory of a forward pass of transformers, traced on the CPU.

Every tensor that an operator of PyTorch returns is followed until its storage goes; weights, buffers and what
the caller passes in do not count, except for the cache, which counts from the start where there is a past.
Memory inside a kernel is not seen, nor is it projected.
"""

import inspect
import weakref

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten


class Trace(TorchDispatchMode):
    """Bytes of the storages that operators made and that are still there, and their most."""

    def __init__(self, given, cache=None, explain=False):
        super().__init__()
        self.given, self.live, self.now, self.explain = given, {}, 0, explain
        self.peak, self.at_peak, self.peak_operator = 0, {}, ""
        for tensor in tensors_of(cache) if cache is not None else ():
            self.follow(tensor, "cache")

    def follow(self, tensor, operator):
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self.given or key in self.live or storage.nbytes() == 0:
            return
        self.live[key] = storage.nbytes(), f"{operator} {list(tensor.shape)} {tensor.dtype}"
        self.now += storage.nbytes()
        weakref.finalize(storage, self.gone, key)
        if self.now > self.peak:
            self.peak, self.peak_operator = self.now, operator
            if self.explain:
                self.at_peak = dict(self.live)

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        result = operator(*args, **(kwargs or {}))
        for value in tree_flatten(result)[0]:
            if isinstance(value, torch.Tensor):
                self.follow(value, str(operator))
        return result

    def gone(self, key):
        self.now -= self.live.pop(key, (0,))[0]


def storages(tensors):
    return {tensor.untyped_storage()._cdata for tensor in tensors}


def tensors_of(cache):
    """What a cache holds: of each layer its tensors, for encoder-decoders of both caches."""
    parts = [cache.self_attention_cache, cache.cross_attention_cache] if hasattr(cache, "self_attention_cache") else [cache]
    return [value for part in parts for layer in part.layers for value in vars(layer).values()
            if isinstance(value, torch.Tensor)]


def lengthen(cache, tokens):
    """Appends tokens of zeros to a cache, which is what a pass over them would leave there."""
    for layer in getattr(cache, "self_attention_cache", cache).layers:
        keys, values = (torch.zeros(*part.shape[:-2], tokens, part.shape[-1], dtype=part.dtype)
                        for part in (layer.keys, layer.values))
        layer.update(keys, values)


def load(kind, config, attention, dtype):
    """The model of this class with weights of zeros, which take no memory: the sizes of a pass do not depend on them."""
    with torch.device("meta"):
        model = kind._from_config(config, attn_implementation=attention, dtype=dtype)
    model = model.to_empty(device="cpu").eval()
    for tensor in [*model.buffers(), *(p for p in model.parameters() if p.dim() < 2)]:
        tensor.data.zero_()  # what is small comes from the heap and may hold anything
    return model


class Pass:
    """One model with what a caller gives it."""

    def __init__(self, model, batch, inputs, all_logits=False):
        self.model, self.batch, self.inputs = model, batch, inputs
        takes = inspect.signature(model.forward).parameters
        self.logits = "last" if "logits_to_keep" in takes and not all_logits else "all"  # what we ask and what we get
        self.options = {"logits_to_keep": 1} if self.logits == "last" else {}
        self.caches = inputs in ("tokens", "sound", "pairs") and ("use_cache" in takes or inputs != "tokens")

    def ids(self, length):
        return torch.ones(self.batch, length, dtype=torch.int64)

    def arguments(self, sequence, source):
        config, dtype = self.model.config, self.model.dtype
        if self.inputs == "image":
            vision = getattr(config, "vision_config", config)
            side = vision.image_size
            pixels = torch.zeros(self.batch, vision.num_channels, side, side, dtype=dtype)
            return {"pixel_values": pixels}
        if self.inputs == "sound":
            sound = torch.zeros(self.batch, config.num_mel_bins, 2 * config.max_source_positions, dtype=dtype)
            return {"input_features": sound, "decoder_input_ids": self.ids(sequence)}
        if self.inputs == "pairs":
            return {"input_ids": self.ids(source), "decoder_input_ids": self.ids(sequence)}
        return {"input_ids": self.ids(sequence)}

    def prefill(self, sequence, explain=False):
        return self.trace(self.arguments(sequence, sequence), explain=explain)

    def decode(self, past, explain=False):
        """One token after `past` others, the last of which came one at a time as in a loop of generation."""
        few = 2
        first = self.model(**self.arguments(few, past), use_cache=True, **self.options)
        given = {"past_key_values": first.past_key_values}
        if self.inputs in ("sound", "pairs"):
            given["encoder_outputs"] = (first.encoder_last_hidden_state,)
        del first
        lengthen(given["past_key_values"], past - few - 1)
        given["decoder_input_ids" if self.inputs in ("sound", "pairs") else "input_ids"] = self.ids(1)
        self.model(**given, use_cache=True, **self.options)
        return self.trace(given, given["past_key_values"], explain)

    def piece(self, sequence, past, explain=False):
        """A piece of a prompt behind `past` tokens, the last of which were a piece of the same length."""
        few = 2
        cache = self.model(input_ids=self.ids(few), use_cache=True, **self.options).past_key_values
        lengthen(cache, past - few - sequence)
        lengthen(cache, sequence)
        return self.trace({"input_ids": self.ids(sequence), "past_key_values": cache}, cache, explain)

    def trace(self, arguments, cache=None, explain=False):
        if self.caches:
            arguments["use_cache"] = True
        given = [*self.model.parameters(), *self.model.buffers(),
                 *(value for value in tree_flatten(arguments)[0] if isinstance(value, torch.Tensor))]
        with Trace(storages(given), cache, explain) as trace:
            self.model(**arguments, **self.options)
        return trace
