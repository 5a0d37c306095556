"""llama.cpp runs what we write: every prompt token's logits beside transformers', for each mapped family."""

import importlib.metadata
import json
import pathlib
import shutil
import tempfile
import unittest

import numpy
import torch
import transformers

import llama
import texts as many_texts
import tokenizer_models
from common import loadline
from test_gguf_names import configurations, model_of

TOKENS = [1] + [(i * 7919) % 310 + 3 for i in range(40)]


@unittest.skipIf(llama.library() is None, "xllamacpp and llama-cpp-py-sync are not installed")
class GgufRuns(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def model(self, name, config):
        torch.manual_seed(7)
        net = model_of(name, config, attn_implementation="eager").eval()
        for weight in net.parameters():
            # in Gemma the embedding is scaled up, and GELU is a table of F16 in llama.cpp
            torch.nn.init.normal_(weight, std=0.05 if name.startswith("gemma") else 0.2)
        net.save_pretrained(self.folder / name)
        return net, self.folder / name

    def convert(self, name, *options):
        out = self.folder / (name + ".gguf")
        loadline("convert", self.folder / name, out, "--force", *options)
        return out

    def test_logits(self):
        print(f"xllamacpp {llama.version()}, transformers {transformers.__version__}")
        for name, config in configurations().items():
            if name.endswith("bert") or name.startswith("t5"):
                continue  # no causal language models
            net, _ = self.model(name, config)
            with torch.inference_mode():
                expected = net(torch.tensor([TOKENS])).logits[0].numpy()
            found = llama.prompt_logits(self.convert(name, "--outtype", "f32"), TOKENS)
            difference = float(abs(found - expected).max())
            print(f"  {name}: largest difference {difference:.1e}, of logits up to {abs(expected).max():.1f}")
            with self.subTest(name):
                self.assertLess(difference, 1e-3)

    def test_encoders(self):
        for name, config in configurations().items():
            if not name.endswith("bert"):
                continue
            net, _ = self.model(name, config)
            with torch.inference_mode():
                expected = net(torch.tensor([TOKENS])).last_hidden_state[0].mean(0).numpy()
            found = llama.embedding(self.convert(name, "--outtype", "f32"), TOKENS, pooling=1)
            cosine = float(found @ expected / numpy.linalg.norm(found) / numpy.linalg.norm(expected))
            print(f"  {name}: cosine {cosine:.9f}")
            with self.subTest(name):
                self.assertGreater(cosine, 0.99999)

    def test_encoder_and_decoder(self):
        for name, config in configurations().items():
            if not name.startswith("t5"):
                continue
            net, _ = self.model(name, config)
            start = [0, 5, 9, 42]
            with torch.inference_mode():
                expected = net(input_ids=torch.tensor([TOKENS]), decoder_input_ids=torch.tensor([start])).logits[0].numpy()
            found = llama.decoder_logits(self.convert(name, "--outtype", "f32"), TOKENS, start)
            if name == "t5":
                found = found / config.d_model**0.5  # llama.cpp does not scale them, as a note of the conversion says
            difference = float(abs(found - expected).max())
            print(f"  {name}: largest difference {difference:.1e}, of logits up to {abs(expected).max():.1f}")
            with self.subTest(name):
                self.assertLess(difference, 1e-3)

    def test_tokenizer_json_alone(self):
        """What transformers 5 saves of a SentencePiece model: llama.cpp cuts texts as transformers does with that file."""
        package = tokenizer_models.package_folder("mistral_common")
        if package is None:
            self.skipTest("mistral-common is not installed")
        import sentencepiece

        config = transformers.LlamaConfig(**{**configurations()["llama"].to_dict(), "vocab_size": 32000})
        _, folder = self.model("llama", config)
        source = folder.parent / "pieces"
        source.mkdir()
        shutil.copy(package / "data/tokenizer.model.v1", source / "tokenizer.model")
        (source / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "LlamaTokenizer"}))
        own = transformers.LlamaTokenizerFast.from_pretrained(source)
        own.save_pretrained(folder)
        own.backend_tokenizer.encode_special_tokens = True
        self.assertFalse((folder / "tokenizer.model").exists())
        out = self.convert("llama", "--outtype", "f32")
        judge = sentencepiece.SentencePieceProcessor(str(source / "tokenizer.model"))
        count, same = 0, 0
        for text in many_texts.texts(200):
            # transformers adds no space before one, llama.cpp and sentencepiece do
            if text and text[0] != " " and "\u2581" not in text:
                expected = own.backend_tokenizer.encode(text, add_special_tokens=False).ids
                self.assertEqual(llama.token_ids(out, text), expected, text)
                count, same = count + 1, same + (expected == judge.encode(text))
        # the file does not say that sentencepiece joins runs of spaces last
        print(f"  {count} texts are cut as transformers cuts them, {same} as sentencepiece {importlib.metadata.version('sentencepiece')} does")
        self.assertGreater(same, count // 2)

    def test_tokenizer(self):
        package = tokenizer_models.package_folder("mistral_common")
        if package is None:
            self.skipTest("mistral-common is not installed")
        import sentencepiece

        print(f"sentencepiece {importlib.metadata.version('sentencepiece')}")
        config = transformers.LlamaConfig(**{**configurations()["llama"].to_dict(), "vocab_size": 32000})
        net, folder = self.model("llama", config)
        shutil.copy(package / "data/tokenizer.model.v1", folder / "tokenizer.model")
        out = self.convert("llama", "--outtype", "f32")
        judge = sentencepiece.SentencePieceProcessor(str(folder / "tokenizer.model"))
        for text in ("Hello world", "Wie geht es dir?\n\n  3.14", "日本語 🚀", "x" * 100):
            self.assertEqual(llama.token_ids(out, text), judge.encode(text), text)
        tokens = [1, *judge.encode("The load line of a ship says how deep it may sink.")]
        with torch.inference_mode():
            expected = net(torch.tensor([tokens])).logits[0].numpy()
        numpy.testing.assert_allclose(llama.prompt_logits(out, tokens), expected, rtol=0, atol=1e-3)
