"""Random GGUF files of several hundred MB, as llama.cpp loads them.

A name is gguf-TIES.TYPE, such as `gguf-untied.q4_0`; `gguf-moe` has experts in stacks of three dimensions,
`gguf-bpe` a vocabulary as large as Llama 3's. Each is a folder with model.gguf."""

import itertools
import os

import numpy
from recipes import folder_once

VOCABULARY = 32000
BPE_VOCABULARY, BPE_MERGES = 128256, 280147  # of Llama 3
CHUNK = 1 << 22  # bytes made at a time

# type: (name in the gguf package, elements of a block, its bytes, where halves lie in it that scale the rest)
TYPES = {
    "f32": ("F32", 1, 4, ()),
    "f16": ("F16", 1, 2, ()),
    "bf16": ("BF16", 1, 2, ()),
    "q4_0": ("Q4_0", 32, 18, (0,)),
    "q4_1": ("Q4_1", 32, 20, (0, 2)),
    "q5_0": ("Q5_0", 32, 22, (0,)),
    "q8_0": ("Q8_0", 32, 34, (0,)),
    "q4_k": ("Q4_K", 256, 144, (0, 2)),
    "q5_k": ("Q5_K", 256, 176, (0, 2)),
    "q6_k": ("Q6_K", 256, 210, (208,)),
    "iq4_nl": ("IQ4_NL", 32, 18, (0,)),
    "mxfp4": ("MXFP4", 32, 17, ()),
}
LAYERS = {"f32": 3, "f16": 6, "bf16": 6, "q8_0": 12, "q6_k": 14}  # so that files are of about one size
MIXED = {"q4_k_m": ("q4_k", "q6_k")}  # most tensors, and the sensitive ones


def _shapes(layers, tied, experts, hidden, wide, shared, vocabulary):
    """Names and shapes, rows first, in the order of files on the hub."""
    if not tied:
        yield "output.weight", (vocabulary, hidden)
    yield "token_embd.weight", (vocabulary, hidden)
    for layer in range(layers):
        block = f"blk.{layer}."
        yield block + "attn_norm.weight", (hidden,)
        stack = (experts,) if experts else ()
        suffix = "_exps.weight" if experts else ".weight"
        yield block + "ffn_down" + suffix, (*stack, hidden, wide)
        yield block + "ffn_gate" + suffix, (*stack, wide, hidden)
        yield block + "ffn_up" + suffix, (*stack, wide, hidden)
        if experts:
            yield block + "ffn_gate_inp.weight", (experts, hidden)
        yield block + "ffn_norm.weight", (hidden,)
        yield block + "attn_k.weight", (shared, hidden)
        yield block + "attn_output.weight", (hidden, hidden)
        yield block + "attn_q.weight", (hidden, hidden)
        yield block + "attn_v.weight", (shared, hidden)
    yield "output_norm.weight", (hidden,)


def _type_of(name, shape, layout):
    if len(shape) == 1 or name.endswith("ffn_gate_inp.weight"):
        return "f32"
    if layout not in MIXED:
        return layout
    most, sensitive = MIXED[layout]
    odd = name.endswith(("attn_v.weight", "ffn_down.weight")) and int(name.split(".")[1]) % 2
    return sensitive if odd or name == "output.weight" else most


def _random(kind, blocks, generator):
    """Blocks of a type, one row each: random bits with scales that keep sums finite."""
    _, elements, size, halves = TYPES[kind]
    if elements == 1:
        values = generator.standard_normal(blocks, dtype=numpy.float32) * numpy.float32(0.02)
        if kind == "bf16":
            return (values.view(numpy.uint32) >> 16).astype(numpy.uint16).view(numpy.uint8)
        return values.astype(numpy.float16 if kind == "f16" else numpy.float32).view(numpy.uint8)
    made = generator.integers(0, 256, (blocks, size), dtype=numpy.uint8)
    for at in halves:
        made[:, at : at + 2] = numpy.frombuffer(numpy.float16(0.001).tobytes(), numpy.uint8)
    if kind == "mxfp4":
        made[:, 0] = 119  # the exponent of 2^-8
    return made.reshape(-1)


class _Tensor:
    """Makes a tensor's bytes while they are written, so that it is never whole in memory."""

    def __init__(self, kind, shape, generator):
        _, elements, size, _ = TYPES[kind]
        self.kind, self.generator = kind, generator
        self.row = shape[-1] // elements * size
        self.shape = (*shape[:-1], self.row)
        self.size = size
        self.nbytes = int(numpy.prod(self.shape, dtype=numpy.int64))

    def tofile(self, file):
        left = self.nbytes // self.size
        while left:
            now = min(left, CHUNK // self.size)
            file.write(_random(self.kind, now, self.generator).tobytes())
            left -= now


def _sentencepiece(writer, count):
    """A SentencePiece vocabulary: three control tokens, the bytes, and made-up words."""
    words = [f"▁w{number}" for number in range(count - 259)]
    writer.add_tokenizer_model("llama")
    writer.add_token_list(["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)] + words)
    writer.add_token_scores([0.0] * 259 + [float(-number) for number in range(len(words))])
    writer.add_token_types([2, 3, 3] + [6] * 256 + [1] * len(words))
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)


def _bpe(writer, count, merges):
    """A byte-level BPE vocabulary: the bytes, made-up words, two control tokens; merges for every split of a word."""
    printable = [chr(byte) for byte in (*range(33, 127), *range(161, 173), *range(174, 256))]
    alphabet = printable + [chr(256 + number) for number in range(256 - len(printable))]
    words = [f"Ġ{number:06}" for number in range(count - 258)]
    splits = (f"{word[:at]} {word[at:]}" for word in words for at in range(1, len(word)))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("llama-bpe")
    writer.add_token_list(alphabet + words + ["<|begin|>", "<|end|>"])
    writer.add_token_types([1] * (count - 2) + [3, 3])
    writer.add_token_merges(list(itertools.islice(splits, merges)))
    writer.add_bos_token_id(count - 2)
    writer.add_eos_token_id(count - 1)


def _write(path, family, layout, tiny):
    import gguf

    hidden, wide, heads, groups, vocabulary = (256, 512, 4, 2, 512) if tiny else (1536, 4096, 12, 2, VOCABULARY)
    experts = 8 if family == "gguf-moe" else 0
    if family == "gguf-bpe" and not tiny:
        vocabulary = BPE_VOCABULARY
    if experts and not tiny:
        wide //= 4
    layers = 2 if tiny else LAYERS.get(layout, 20) // (2 if experts else 1)
    generator = numpy.random.default_rng(1)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(layers)
    writer.add_context_length(2048)
    writer.add_embedding_length(hidden)
    writer.add_feed_forward_length(wide)
    writer.add_head_count(heads)
    writer.add_head_count_kv(groups)
    writer.add_rope_dimension_count(hidden // heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(vocabulary)
    if experts:
        writer.add_expert_count(experts)
        writer.add_expert_used_count(2)
    if family == "gguf-bpe":
        _bpe(writer, vocabulary, 1000 if tiny else BPE_MERGES)
    else:
        _sentencepiece(writer, vocabulary)
    tensors = []
    for name, shape in _shapes(layers, family == "gguf-tied", experts, hidden, wide,
                               hidden // heads * groups, vocabulary):
        kind = _type_of(name, shape, layout)
        tensors.append(_Tensor(kind, shape, generator))
        writer.add_tensor_info(name, tensors[-1].shape, numpy.dtype(numpy.uint8), tensors[-1].nbytes,
                               raw_dtype=gguf.GGMLQuantizationType[TYPES[kind][0]])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    file = writer.fout[0]
    _pad(file, writer.data_alignment)
    for tensor in tensors:
        tensor.tofile(file)
        _pad(file, writer.data_alignment)
    writer.close()


def _pad(file, alignment):
    file.write(bytes(-file.tell() % alignment))


def make(root, name, tiny=False):
    """The folder of a checkpoint; written on first use, whole or not at all."""
    family, layout = name.split(".")
    return folder_once(root, name, tiny, lambda folder: _write(os.path.join(folder, "model.gguf"), family, layout, tiny))


if __name__ == "__main__":
    import sys

    for asked in sys.argv[2:]:
        print(make(sys.argv[1], asked.removeprefix("tiny-"), asked.startswith("tiny-")))
