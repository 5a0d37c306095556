"""Texts in many scripts for the tokenizer tests, the same in every run."""

import inspect as source_of
import json
import random
import textwrap
import unicodedata

SCRIPTS = {
    "latin": (0x41, 0x5A, 0x61, 0x7A, 0xC0, 0x24F, 0x1E00, 0x1EFF),
    "greek": (0x370, 0x3FF, 0x1F00, 0x1FFF),
    "cyrillic": (0x400, 0x52F),
    "armenian": (0x531, 0x58F),
    "hebrew": (0x591, 0x5F4),
    "arabic": (0x600, 0x6FF, 0xFB50, 0xFC00, 0xFE70, 0xFEFC),
    "devanagari": (0x900, 0x97F),
    "bengali": (0x980, 0x9FE),
    "tamil": (0xB80, 0xBFA),
    "telugu": (0xC00, 0xC7F),
    "thai": (0xE01, 0xE5B),
    "lao": (0xE81, 0xEDF),
    "tibetan": (0xF00, 0xFDA),
    "burmese": (0x1000, 0x109F),
    "georgian": (0x10A0, 0x10FF),
    "hangul": (0xAC00, 0xD7A3, 0x1100, 0x11FF),
    "ethiopic": (0x1200, 0x1399),
    "cherokee": (0x13A0, 0x13FD),
    "khmer": (0x1780, 0x17F9),
    "mongolian": (0x1800, 0x18AA),
    "kana": (0x3041, 0x30FF, 0xFF61, 0xFF9F),
    "han": (0x4E00, 0x9FFF, 0x3400, 0x4DBF, 0x20000, 0x20200),
    "fullwidth": (0xFF01, 0xFF5E),
    "symbols": (0x2010, 0x2BFF),
}
MARKS = [chr(c) for c in (*range(0x300, 0x370), *range(0x20D0, 0x20F1), 0xFE0E, 0xFE0F)]
SPACES = [" ", "  ", "   ", " " * 17, " " * 80, "\t", "\n", "\n\n", "\r\n", " \n ", "\t\t ", "\u00a0", "\u2003", "\u3000", "\u2028", "\u0085", "\u200b", "\x0b", "\x0c", "\u1680", "\u2581"]
EMOJI = ["🚀", "😶‍🌫️", "👩‍👩‍👧‍👦", "🏳️‍🌈", "👍🏽", "🇩🇪🇫🇷", "1️⃣", "❤️", "🦙", "✅"]
CONTRACTIONS = ["I've", "don't", "we'LL", "'RE you", "it's", "'M not", "y'all'd've", "l’été", "’s", "'ſ"]
PUNCTUATION = ["...", "!?!?", "------", "=====", "``", "''''", '"""', "<|", "|>", "[", "]]", "{}", "();", "://", "#!", "\\n", "@@", "$^", "¡¿", "«»", "„“", "、。", "；：", "…", "—", "_", "__init__"]
CONTROLS = ["\x00", "\x01", "\x07", "\x1b[0m", "\x7f", "\u0080", "\u00ad", "\u200d", "\u200e", "\u202e", "\u2066", "\ufeff", "\ufffd", "\ufff9", "\ue000", "\U000e0041", "\U0010fffd"]
COMPATIBILITY = ["ﬁ", "ﬃ", "①", "㎏", "ｶﾞ", "½", "²", "Ⅷ", "㍿", "ǆ", "Å", "é", "e\u0301", "ậ", "İ", "ß", "ΑΣ", "ς", "각", "\u1100\u1161\u11a8", "ำ", "ࣔ"]
SPECIAL = ["<s>", "</s>", "<unk>", "<|endoftext|>", "[MASK]", "[CLS]", "<extra_0>", "lone", "Day", "<left>", "<right>", "<0x0A>"]
WORDS = "the quick brown fox jumps over lazy dog model tensor layer attention Hello world import return def class self None True weights convert file".split()


def letters(script):
    ranges = SCRIPTS[script]
    for first, last in zip(ranges[::2], ranges[1::2]):
        for code in range(first, last + 1):
            if unicodedata.category(chr(code)) not in ("Cn", "Cs"):
                yield chr(code)


def prose():
    """English and code, from Python's own library."""
    sources = (textwrap, json, random, source_of)
    return "".join(source_of.getsource(module) for module in sources)


def texts(count=2000, seed=1):
    chance = random.Random(seed)
    alphabets = {script: list(letters(script)) for script in SCRIPTS}
    lines = prose().split("\n")

    def word():
        return "".join(chance.choices(alphabets[chance.choice(list(SCRIPTS))], k=chance.randint(1, 9)))

    def fragment():
        kind = chance.randrange(12)
        if kind == 0:
            return word()
        if kind == 1:
            return " ".join(word() for _ in range(chance.randint(1, 4)))
        if kind == 2:
            return " ".join(chance.choices(WORDS, k=chance.randint(1, 6)))
        if kind == 3:
            return "\n".join(lines[at : at + chance.randint(1, 4)]) if (at := chance.randrange(len(lines))) else ""
        if kind == 4:
            return chance.choice(["", " "]) + "".join(chance.choices("0123456789", k=chance.randint(1, 12))) + chance.choice(["", ".5", ",000", "٣", "१२", "²"])
        if kind == 5:
            return "".join(letter + "".join(chance.choices(MARKS, k=chance.randint(0, 3))) for letter in word())
        if kind == 6:
            return chance.choice(EMOJI) * chance.randint(1, 3)
        if kind == 7:
            return chance.choice(["", " "]) + chance.choice(PUNCTUATION) + chance.choice(PUNCTUATION + [""])
        if kind == 8:
            return chance.choice(CONTRACTIONS + COMPATIBILITY)
        if kind == 9:
            return chance.choice(["", " ", "a"]) + chance.choice(SPECIAL) + chance.choice(["", " ", "b"])
        if kind == 10:
            return chance.choice(CONTROLS)
        return chance.choice(SPACES)

    made = ["", " ", "  ", "\n", "a", "▁", "<s>", "  <s>  ", "A" * 300, "ab" * 500, " " * 300, "1" * 100, "é" * 200, "中" * 200]
    while len(made) < count:
        made.append(chance.choice(["", "", " ", chance.choice(SPACES)]).join(fragment() for _ in range(chance.randint(1, 8))))
    return made[:count]


def every_character(of=40):
    """Texts with every character that Unicode 14 has, but for most of the private ones."""
    kinds = [chr(code) for code in range(0x110000) if code < 0xF0100 and unicodedata.category(chr(code)) not in ("Cn", "Cs")]
    return ["".join(f"a{character}b" for character in kinds[at : at + of]) for at in range(0, len(kinds), of)]
