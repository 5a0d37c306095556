"""transformers with something behind it: adapters of peft, and GGUF files."""

import os

from recipes import FIXED_HEAP, recipe
from recipes_transformers import _load


def _rank(model):
    """The adapter's own: checkpoints.py writes it."""
    return ("--lora-rank", "16") if "lora-all" in model else ("--lora-rank", "16", "--lora-targets", "q_proj,v_proj")


ADAPTED = ("llama-small-untied.lora-safetensors", "llama-untied.lora-safetensors", "llama-small-untied.lora-all-safetensors",
           "llama-tied.lora-all-safetensors")
OWN_FILE = "the adapter's own file is mapped while it is read, which is no part of the model"


@recipe("peft_attach", *ADAPTED, framework="peft", flags=_rank, reason=OWN_FILE)
def peft_attach(model):
    """from_pretrained() on the CPU, then PeftModel.from_pretrained()"""
    import peft

    return peft.PeftModel.from_pretrained(_load(model), os.path.join(model, "adapter"))


@recipe("peft_merge", *ADAPTED, framework="peft", flags=_rank, variables=FIXED_HEAP, reason=OWN_FILE)
def peft_merge(model):
    """the same, then merge_and_unload(); fixed mmap threshold"""
    return peft_attach(model).merge_and_unload()


def _gguf(model, **more):
    import transformers

    return transformers.AutoModelForCausalLM.from_pretrained(model, gguf_file="model.gguf", **more)


WORDS = "what Python makes of a vocabulary is fitted to few loads"
GGUF = ("gguf-untied.f16", "gguf-untied.q8_0", "gguf-tied.q4_0", "gguf-bpe.q8_0")


@recipe("transformers_gguf", *GGUF, framework="transformers", reason=WORDS)
def transformers_gguf(model):
    """from_pretrained(gguf_file=...) on the CPU"""
    return _gguf(model)


@recipe("transformers_gguf", *GGUF, framework="transformers", flags=("--cast", "bf16"), variables=FIXED_HEAP, reason=WORDS)
def transformers_gguf_bf16(model):
    """from_pretrained(gguf_file=..., dtype=bfloat16) on the CPU, fixed mmap threshold"""
    import torch

    return _gguf(model, dtype=torch.bfloat16)
