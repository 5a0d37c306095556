"""Every setting of a tokenizer.json that changes how texts are cut, changed once: llama.cpp cuts them as the tokenizers
library does, or convert refuses it by name."""

import collections
import importlib.metadata
import json
import pathlib
import subprocess
import tempfile
import unicodedata
import unittest

import transformers
from tokenizers import AddedToken, Regex, Tokenizer, normalizers, pre_tokenizers

import llama
import texts as many_texts
import tokenizer_models
from common import PROGRAM
from test_gguf_names import configurations, model_of

NORMALIZERS = {
    "NFC": normalizers.NFC(), "NFD": normalizers.NFD(), "NFKC": normalizers.NFKC(), "NFKD": normalizers.NFKD(), "Lowercase": normalizers.Lowercase(),
    "StripAccents": normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents()]), "Strip": normalizers.Strip(), "Nmt": normalizers.Nmt(),
    "Replace": normalizers.Replace("a", "b"), "Replace regex": normalizers.Replace(Regex(r"\s+"), " "), "Prepend": normalizers.Prepend("_"),
    "BertNormalizer": normalizers.BertNormalizer(), "ByteLevel": normalizers.ByteLevel(), "Sequence": normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()]),
}
PRE_TOKENIZERS = {
    **tokenizer_models.BYTE_LEVEL,
    "Whitespace": tokenizer_models.byte_level(pre_tokenizers.Whitespace()), "WhitespaceSplit": tokenizer_models.byte_level(pre_tokenizers.WhitespaceSplit()),
    "Punctuation": tokenizer_models.byte_level(pre_tokenizers.Punctuation()), "Digits": tokenizer_models.byte_level(pre_tokenizers.Digits(False)),
    "CharDelimiterSplit": tokenizer_models.byte_level(pre_tokenizers.CharDelimiterSplit("x")), "UnicodeScripts": tokenizer_models.byte_level(pre_tokenizers.UnicodeScripts()),
    "Metaspace": tokenizer_models.byte_level(pre_tokenizers.Metaspace()), "BertPreTokenizer": tokenizer_models.byte_level(pre_tokenizers.BertPreTokenizer()),
}
ADDED = {
    "plain": {}, "lstrip": {"lstrip": True}, "rstrip": {"rstrip": True}, "single_word": {"single_word": True}, "normalized": {"normalized": True},
    "special": {"special": True}, "special lstrip": {"special": True, "lstrip": True}, "special rstrip": {"special": True, "rstrip": True},
    "special single_word": {"special": True, "single_word": True}, "special normalized": {"special": True, "normalized": True},
}
AROUND = ["a <Tok> b", "a<Tok>b", "x  <Tok>  y", "<Tok>", "<Tok><Tok>\n<Tok>", "<tok> b", "word<Tok> 3"]


@unittest.skipIf(llama.library() is None, "xllamacpp and llama-cpp-py-sync are not installed")
class GgufCuts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name) / "model"
        transformers.utils.logging.disable_progress_bar()
        corpus = [*many_texts.texts(200), *many_texts.prose().split("\n")]
        told = json.loads(tokenizer_models.train_byte_level(corpus, tokenizer_models.BYTE_LEVEL["qwen2"]).to_str())
        told["added_tokens"] = [token for token in told["added_tokens"] if token["special"]]
        self.base = json.dumps(told)
        self.texts = [unicodedata.normalize("NFC", text) for text in many_texts.texts(60)]
        config = transformers.Qwen2Config(**{**configurations()["qwen2"].to_dict(), "vocab_size": 2600})
        model_of("qwen2", config).save_pretrained(self.folder)

    def convert(self, *options):
        done = subprocess.run([PROGRAM, "convert", self.folder, self.folder.parent / "m.gguf", "--force", *options], capture_output=True, text=True)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return "" if done.returncode == 0 else done.stderr

    def verdict(self, tokenizer, names):
        """'followed' or 'refused'; fails for what is neither."""
        self.folder.joinpath("tokenizer.json").write_text(tokenizer.to_str())
        why = self.convert()
        if "its steps are those of qwen2" in why or "its steps are those of 'qwen2'" in why:  # no hash tells of a vocabulary trained here
            why = self.convert("--pre-tokenizer", "qwen2")
        if why:
            self.assertTrue(any(name in why for name in (*names, "pre-tokenizer is not known")), why)
            return "refused"
        own = Tokenizer.from_str(tokenizer.to_str())
        own.encode_special_tokens = True
        for text in (*self.texts, *AROUND):
            if text:
                self.assertEqual(llama.token_ids(self.folder.parent / "m.gguf", text), own.encode(text, add_special_tokens=False).ids, repr(text))
        return "followed"

    def test_each(self):
        print(f"xllamacpp {llama.version()}, tokenizers {importlib.metadata.version('tokenizers')}")
        cases = [("as it is", [], lambda own: own)]
        for name, one in NORMALIZERS.items():
            cases.append((f"normalizer {name}", ["normalizer"], lambda own, one=one: setattr(own, "normalizer", one)))
            cases.append((f"normalizer {name}, added token", ["normalizer"], lambda own, one=one: (setattr(own, "normalizer", one), own.add_tokens([AddedToken("<Tok>", normalized=True)]))))
        for name, one in PRE_TOKENIZERS.items():
            cases.append((f"pre-tokenizer {name}", ["pre_tokenizer"], lambda own, one=one: setattr(own, "pre_tokenizer", one)))
        for name, flags in ADDED.items():
            add = lambda own, flags=flags: (own.add_special_tokens if flags.get("special") else own.add_tokens)([AddedToken("<Tok>", **{"normalized": False, **flags})])
            cases.append((f"added token {name}", [f"added_tokens.{flag}" for flag in flags], add))
        counts = collections.defaultdict(list)
        for name, names, change in cases:
            own = Tokenizer.from_str(self.base)
            change(own)
            with self.subTest(name):
                counts[self.verdict(own, names)].append(name)
        for verdict, which in counts.items():
            print(f"  {verdict}: {', '.join(which)}")
        self.assertGreater(len(counts["followed"]), 6)


if __name__ == "__main__":
    unittest.main()
