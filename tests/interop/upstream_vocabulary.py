"""usage: upstream_vocabulary.py FOLDER...: what llama.cpp's converter writes about each model's tokenizer.

Run with the converter's own folder first on PYTHONPATH. Prints {folder: {key: value}}. A folder with a file `pre`
has a vocabulary of our own, whose pre-tokenizer the converter cannot know: it gets the one that the file names.
"""

import json
import logging
import pathlib
import sys

import conversion
import gguf
from conversion.base import ModelBase, TextModel


def plain(value):
    if isinstance(value, (bytes, bytearray)):
        return list(value)
    if isinstance(value, (list, tuple)):
        return [item.decode("utf-8") if isinstance(item, bytes) else plain(item) for item in value]
    return int(value) if type(value).__name__ == "TokenType" or type(value).__mro__[1].__name__ == "IntEnum" else value


def keys(folder):
    config = json.loads((folder / "config.json").read_text())
    model_class = conversion.get_model_class(config["architectures"][0])
    model = model_class.__new__(model_class)
    model.dir_model = folder
    model.hparams = {**config, **config.get("text_config", {})}
    model.is_mistral_format = False
    model.origin_hf_arch = None
    model.gguf_writer = gguf.GGUFWriter(None, "llama")
    known = TextModel.get_vocab_base_pre
    if (folder / "pre").exists():
        TextModel.get_vocab_base_pre = lambda self, tokenizer: (folder / "pre").read_text()
    try:
        model.set_vocab()
    finally:
        TextModel.get_vocab_base_pre = known
    return {name: plain(value.value) for name, value in model.gguf_writer.kv_data[0].items() if name.startswith("tokenizer.")}


logging.disable(logging.CRITICAL)
told = {}
for name in sys.argv[1:]:
    try:
        told[name] = keys(pathlib.Path(name))
    except Exception as error:
        told[name] = {"error": f"{type(error).__name__}: {error}"}
print(json.dumps(told))
