"""Every setting of a tokenizer.json that changes how texts are cut, changed once: llama.cpp cuts them as the tokenizers
library does, or convert refuses it by name."""

import collections
import importlib.metadata
import json
import os
import pathlib
import subprocess
import tempfile
import unicodedata
import unittest

import transformers
from tokenizers import AddedToken, Regex, Tokenizer, normalizers, pre_tokenizers, processors

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
# templates around a text; without tokenizer_config.json they alone say what begins and ends it
TEMPLATES = {"none": "$A", "begin": "<s> $A", "end": "$A </s>", "begin and end": "<s> $A </s>", "two begin": "<s> <unk> $A", "two end": "$A <unk> </s>",
             "twice": "$A </s> $A", "other begin": "<unk> $A"}
# Marks, letters of many scripts with capitals inside, numbers, spaces and lines.
WORDS = ["हिन्दी में", "приветМир", "ÉcoleÀla", "తెలుగు వ్యవస్థ", "a\u0301b Ca\u0302fe", "McDonald's ABCdef", "中文字 한국어", "ΑΒΓαβγ", "x\u0301\u0302y", "ไทยภาษา",
         "مَرحبا", "it's ΔE'S", "123456 7", "a1b2", "...!?\n\n//x", ")\n\n//", " \t x", "ǅungla ʰa", "\u0301a", "\u2028x", "\u00a0y", "_a_b", "$100", "'hello",
         "x  y   z\n\n \nq"]
RULES = pathlib.Path(__file__).parents[2] / "assets" / "tokenizers" / "pre_tokenizers.json"
AROUND = ["a <Tok> b", "a<Tok>b", "x  <Tok>  y", "<Tok>", "<Tok><Tok>\n<Tok>", "<tok> b", "word<Tok> 3"]


def step_of(words):
    """The pre-tokenizer that a step of the rules names."""
    if words.startswith("Split isolated: "):
        return tokenizer_models.split(words.removeprefix("Split isolated: "))
    return {"ByteLevel": tokenizer_models.byte_level(), "ByteLevel with its expression": tokenizer_models.byte_level(use_regex=True),
            "Digits": pre_tokenizers.Digits(False), "Digits one by one": pre_tokenizers.Digits(True),
            "Punctuation contiguous": pre_tokenizers.Punctuation("contiguous")}[words]


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

    def verdict(self, tokenizer, names, more=()):
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
        for special, texts in ((False, [text for text in (*self.texts, *more, *AROUND) if text]), (True, AROUND)):
            for text, found in zip(texts, llama.many_token_ids(self.folder.parent / "m.gguf", texts, special)):
                self.assertEqual(found, own.encode(text, add_special_tokens=special).ids, repr(text))
        return "followed"

    def with_whole_word(self, own, ignore):
        """The first word of the texts that is cut into two pieces becomes a piece; its merges go with it."""
        told = json.loads(own.to_str())
        word = next(piece for text in self.texts for piece, _ in own.pre_tokenizer.pre_tokenize_str(text)
                    if len(own.encode(text).ids) > 1 and piece not in told["model"]["vocab"] and len(piece) > 3)
        told["model"]["vocab"][word] = own.get_vocab_size() + 10  # the library numbers added tokens anew
        told["model"]["ignore_merges"] = ignore
        self.replaced = Tokenizer.from_str(json.dumps(told))

    def without_byte(self, own):
        told = json.loads(own.to_str())
        del told["model"]["vocab"]["\u0101"]  # stands for the byte 1
        told["model"]["unk_token"] = "<unk>"
        self.replaced = Tokenizer.from_str(json.dumps(told))

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
        special = [(token, Tokenizer.from_str(self.base).token_to_id(token)) for token in ("<s>", "</s>", "<unk>")]
        for name, template in TEMPLATES.items():
            processor = processors.TemplateProcessing(single=template, pair="$A $B", special_tokens=special)
            cases.append((f"template {name}", ["post_processor"], lambda own, processor=processor: setattr(own, "post_processor", processor)))
        cases.append(("RobertaProcessing", ["post_processor"], lambda own: setattr(own, "post_processor", processors.RobertaProcessing(special[1], special[0]))))
        cases.append(("BertProcessing", ["post_processor"], lambda own: setattr(own, "post_processor", processors.BertProcessing(special[1], special[0]))))
        # as it is trained, the merges make every piece; then a whole word that they do not make
        cases.append(("ignore_merges without effect", [], lambda own: setattr(own.model, "ignore_merges", True)))
        cases.append(("ignore_merges", ["model.ignore_merges"], lambda own: self.with_whole_word(own, True)))
        cases.append(("a piece that no merge makes", [], lambda own: self.with_whole_word(own, False)))
        cases.append(("unk_token", [], lambda own: setattr(own.model, "unk_token", "<unk>")))
        cases.append(("unk_token for a byte", ["model.unk_token"], lambda own: self.without_byte(own)))
        counts = collections.defaultdict(list)
        for name, names, change in cases:
            self.replaced, own = None, Tokenizer.from_str(self.base)
            change(own)
            own = self.replaced or own
            with self.subTest(name):
                counts[self.verdict(own, names)].append(name)
        for verdict, which in counts.items():
            print(f"  {verdict}: {', '.join(which)}")
        self.assertGreater(len(counts["followed"]), 6)

    @unittest.skipIf(tokenizer_models.package_folder("llama_models") is None, "llama_models is not installed")
    def test_real_vocabulary(self):
        """Of Llama 3's 128,000 tokens, whose merges do not make every piece: cut as its ignore_merges says, or refused where
        llama.cpp thinks the contrary of a pre-tokenizer. The texts are also every 50th piece, as a word of its own."""
        tokenizer = tokenizer_models.llama3()
        size = tokenizer.get_vocab_size()
        more = [piece for piece in (tokenizer.decode([id]) for id in range(300, size, 50)) if piece and "\ufffd" not in piece]
        config = transformers.Qwen2Config(**{**configurations()["qwen2"].to_dict(), "vocab_size": size, "tie_word_embeddings": True})
        model_of("qwen2", config).save_pretrained(self.folder)
        self.assertEqual(self.verdict(tokenizer, [], more), "followed")
        told = json.loads(tokenizer.to_str())
        told["model"]["ignore_merges"] = False
        self.assertEqual(self.verdict(Tokenizer.from_str(json.dumps(told)), ["model.ignore_merges"], more), "refused")

    def test_rules_of_pre_tokenizers(self):
        """A vocabulary whose merges go across words shows each cut: where llama.cpp's differ from the tokenizer's, a note says so."""
        corpus = [*(word for word in WORDS for _ in range(40)), *many_texts.texts(100)]
        told = json.loads(tokenizer_models.train_byte_level(corpus, tokenizer_models.byte_level()).to_str())
        told["added_tokens"] = [token for token in told["added_tokens"] if token["special"]]
        told["model"]["ignore_merges"] = False
        texts = [*WORDS, *(text for text in many_texts.texts(60) if text)]
        counts = collections.defaultdict(list)
        for rule in json.loads(RULES.read_text())["rules"]:
            if "BertPreTokenizer" in rule["steps"]:
                continue
            own = Tokenizer.from_str(json.dumps(told))
            own.pre_tokenizer = pre_tokenizers.Sequence([step_of(words) for words in rule["steps"]])
            own.encode_special_tokens = True
            self.folder.joinpath("tokenizer.json").write_text(own.to_str())
            for name in rule["ids"] if os.environ.get("LOADLINE_ALL_SETTINGS") else rule["ids"][:1]:
                with self.subTest(name):
                    done = subprocess.run([PROGRAM, "convert", self.folder, self.folder.parent / "m.gguf", "--force", "--pre-tokenizer", name],
                                          capture_output=True, text=True)
                    if "model.ignore_merges" in done.stderr:
                        counts["refused"].append(name)
                        continue
                    self.assertEqual(done.returncode, 0, done.stderr)
                    found = llama.many_token_ids(self.folder.parent / "m.gguf", texts)
                    alike = all(ids == own.encode(text, add_special_tokens=False).ids for text, ids in zip(texts, found))
                    self.assertEqual("cut some texts otherwise" not in done.stderr, alike, done.stderr)
                    counts["alike" if alike else "noted"].append(name)
        for verdict, which in counts.items():
            print(f"  {verdict}: {', '.join(which)}")
        self.assertGreater(len(counts["alike"]), 4)
        self.assertGreater(len(counts["noted"]), 3)


if __name__ == "__main__":
    unittest.main()
