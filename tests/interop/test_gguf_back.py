"""GGUF files made into Hugging Face folders again: transformers loads them, with the same numbers and token ids."""

import pathlib
import shutil
import tempfile
import unittest

import safetensors
import safetensors.torch
import torch
import transformers

import llama
import tokenizer_models
from common import loadline
from test_gguf_names import configurations, model_of

# Gemma's norms are stored as 1 + w: the sum is rounded in F32.
CLOSE = {"gemma", "gemma2", "gemma3"}
# The file has the frequencies of llama3 scaling, but not the settings that they came from: taken as Llama 3's.
GUESSED = {"llama3"}
# Mistral and Llama are one architecture in a GGUF file.
AS_LLAMA = {"mistral"}


class GgufBack(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def there_and_back(self, name):
        out, back = self.folder / (name + ".gguf"), self.folder / (name + "-back")
        loadline("convert", self.folder / name, out, "--force")
        loadline("convert", out, back, "--force")
        return out, back

    def test_numbers(self):
        print(f"transformers {transformers.__version__}, safetensors {safetensors.__version__}")
        for name, config in configurations().items():
            with self.subTest(name):
                torch.manual_seed(3)
                net = model_of(name, config)
                for weight in net.parameters():
                    torch.nn.init.normal_(weight, std=0.2)
                net.to(torch.bfloat16).save_pretrained(self.folder / name)
                _, back = self.there_and_back(name)
                # transformers puts the inner model's name before names, checkpoints of the inner model do not
                before = {key.removeprefix("transformer.") if name == "gpt2" else key: weight for key, weight in
                          safetensors.torch.load_file(self.folder / name / "model.safetensors").items()}
                after = safetensors.torch.load_file(back / "model.safetensors")
                # poolers and heads that llama.cpp has no use for stay behind
                lost = {key for key in before if key not in after}
                self.assertTrue(all("pooler" in key or "cls." in key for key in lost), lost)
                self.assertEqual(set(after) - set(before), set())
                for key, weight in after.items():
                    if name in CLOSE and key.endswith("norm.weight"):
                        torch.testing.assert_close(weight, before[key], rtol=0, atol=1e-3, msg=key)
                    else:
                        self.assertTrue(torch.equal(weight, before[key]), key)
                loaded = transformers.AutoConfig.from_pretrained(back)
                self.assertEqual(loaded.model_type, "llama" if name in AS_LLAMA else net.config.model_type)

    def test_logits(self):
        """What transformers computes with the restored folder, configuration and all."""
        tokens = torch.tensor([[1] + [(i * 7919) % 310 + 3 for i in range(20)]])
        for name, config in configurations().items():
            if name.startswith("t5") or name.endswith("bert") or name in GUESSED:
                continue
            with self.subTest(name):
                torch.manual_seed(3)
                net = model_of(name, config, attn_implementation="eager").eval()
                net.save_pretrained(self.folder / name)
                _, back = self.there_and_back(name)
                other = transformers.AutoModelForCausalLM.from_pretrained(back, attn_implementation="eager").eval()
                with torch.inference_mode():
                    expected, found = net(tokens).logits, other(tokens).logits
                difference = float((expected - found).abs().max())
                print(f"  {name}: largest difference {difference:.1e}")
                self.assertLess(difference, 1e-3)

    def test_tokenizer(self):
        package = tokenizer_models.package_folder("mistral_common")
        if package is None or llama.library() is None:
            self.skipTest("mistral-common or llama.cpp is not installed")
        config = transformers.LlamaConfig(**{**configurations()["llama"].to_dict(), "vocab_size": 32000})
        model_of("llama", config).save_pretrained(self.folder / "llama")
        shutil.copy(package / "data/tokenizer.model.v1", self.folder / "llama/tokenizer.model")
        out, back = self.there_and_back("llama")
        tokenizer = transformers.AutoTokenizer.from_pretrained(back)
        for text in ("Hello world", "Wie geht es dir?\n\n  3.14", "日本語 🚀 naïve", "x" * 100, " leading and trailing "):
            self.assertEqual(tokenizer(text, add_special_tokens=False)["input_ids"], llama.token_ids(out, text), text)
        self.assertEqual(tokenizer("a")["input_ids"][0], 1)


if __name__ == "__main__":
    unittest.main()
