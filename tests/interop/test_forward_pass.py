"""The projected peak of a forward pass beside a traced one of transformers, on the CPU, of small models of many
families. forward/truth.py does the same at the sizes of published models.
"""

import json
import subprocess
import tempfile
import unittest

from common import PROGRAM

try:
    import torch
    import transformers
    from forward.tracer import Pass, load
except ImportError:
    torch = None

SEQUENCE = 256
PAST = 300
# Two sequences of another length, where a family's own sizes meet others' at 256; by default one of SEQUENCE.
SIZES = {family: (2, 200) for family in (
    "mistral", "gemma3", "gpt_oss", "llama4", "gpt_neox", "phi3", "opt", "bloom", "falcon", "falcon_7b", "falcon_rw",
    "mamba", "mamba2", "bert_512", "granite")}
ALL_LOGITS = {"granite", "gemma2_all"}
WITHIN = 0.02
# transformers has no sdpa for capped scores, sinks, slopes that are added inside, or no attention at all.
EAGER_ONLY = {"gemma2", "gemma2_all", "gpt_oss", "bloom", "mamba", "mamba2"}


def configs():
    t = transformers
    plain = dict(hidden_size=256, num_attention_heads=8, vocab_size=1000)
    llama = dict(**plain, intermediate_size=512, num_hidden_layers=4, num_key_value_heads=4)
    small = dict(hidden_size=256, num_attention_heads=8, vocab_size=800)
    return {
        "llama": t.LlamaConfig(**small, num_hidden_layers=4, num_key_value_heads=2, intermediate_size=704),
        "qwen3": t.Qwen3Config(**small, num_hidden_layers=3, num_key_value_heads=4, head_dim=48, intermediate_size=600),
        "olmo2": t.Olmo2Config(**small, num_hidden_layers=3, num_key_value_heads=4, intermediate_size=600),
        "smollm3": t.SmolLM3Config(**small, num_hidden_layers=5, num_key_value_heads=2, intermediate_size=600, pad_token_id=0),
        "gemma2": t.Gemma2Config(**small, num_hidden_layers=4, num_key_value_heads=4, head_dim=32,
                                 intermediate_size=600, sliding_window=4096),
        "gpt2": t.GPT2Config(n_embd=192, n_layer=3, n_head=6, vocab_size=700, n_positions=1024),
        "mixtral": t.MixtralConfig(**small, num_hidden_layers=3, num_key_value_heads=2, intermediate_size=320,
                                   num_local_experts=4, num_experts_per_tok=2, sliding_window=None),
        "deepseek_v3": t.DeepseekV3Config(
            **small, num_hidden_layers=3, num_key_value_heads=8, q_lora_rank=96, kv_lora_rank=64,
            qk_nope_head_dim=32, qk_rope_head_dim=16, v_head_dim=32, intermediate_size=512,
            moe_intermediate_size=128, n_routed_experts=8, n_shared_experts=1, num_experts_per_tok=2,
            first_k_dense_replace=1, n_group=2, topk_group=1),
        "bert": t.BertConfig(hidden_size=192, num_hidden_layers=3, num_attention_heads=6, intermediate_size=700,
                             vocab_size=700),
        "t5": t.T5Config(d_model=192, d_kv=32, d_ff=512, num_layers=3, num_heads=6, vocab_size=700),
        # windows shorter than the prompt
        "mistral": t.MistralConfig(**llama, sliding_window=64),
        "gemma3": t.Gemma3TextConfig(**{**llama, "num_hidden_layers": 7}, head_dim=32, sliding_window=64),
        "gpt_oss": t.GptOssConfig(**llama, head_dim=32, num_local_experts=4, num_experts_per_tok=2,
                                  sliding_window=64),
        "llama4": t.Llama4TextConfig(**llama, intermediate_size_mlp=600, head_dim=32, num_local_experts=4,
                                     attention_chunk_size=64),
        # one projection for q, k and v, which stays; gates, steps and slopes of their own
        "gpt_neox": t.GPTNeoXConfig(**plain, num_hidden_layers=4, intermediate_size=512),
        "phi3": t.Phi3Config(**llama, pad_token_id=0),
        "opt": t.OPTConfig(**plain, ffn_dim=512, num_hidden_layers=4, word_embed_proj_dim=256),
        "bloom": t.BloomConfig(hidden_size=256, n_layer=4, n_head=8, vocab_size=1000),
        "falcon": t.FalconConfig(**plain, num_hidden_layers=4, new_decoder_architecture=True, num_kv_heads=2),
        "falcon_7b": t.FalconConfig(**plain, num_hidden_layers=4),
        "falcon_rw": t.FalconConfig(**plain, num_hidden_layers=4, alibi=True, multi_query=False,
                                    parallel_attn=False, bias=True),
        "mamba": t.MambaConfig(hidden_size=256, num_hidden_layers=4, vocab_size=1000),
        "mamba2": t.Mamba2Config(hidden_size=256, num_hidden_layers=4, vocab_size=1000, num_heads=8, head_dim=64,
                                 n_groups=1, state_size=128),
        "bert_512": t.BertConfig(**plain, num_hidden_layers=4, intermediate_size=512),
        # experts narrower than the layers, which gather their tokens
        "qwen3_moe": t.Qwen3MoeConfig(**llama, head_dim=32, moe_intermediate_size=96, num_experts=8, num_experts_per_tok=4),
        "qwen2_moe": t.Qwen2MoeConfig(**llama, moe_intermediate_size=96, shared_expert_intermediate_size=512, num_experts=8,
                                      num_experts_per_tok=4),
        # images and sound
        "vit": t.ViTConfig(hidden_size=192, num_hidden_layers=3, num_attention_heads=6, intermediate_size=768),
        "siglip": t.SiglipVisionConfig(hidden_size=192, num_hidden_layers=3, num_attention_heads=6, intermediate_size=768),
        "clip": t.CLIPVisionConfig(hidden_size=192, num_hidden_layers=3, num_attention_heads=6, intermediate_size=768,
                                   patch_size=16),
        "whisper": t.WhisperConfig(d_model=128, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
                                   decoder_attention_heads=4, encoder_ffn_dim=512, decoder_ffn_dim=512, vocab_size=1000,
                                   max_source_positions=400, pad_token_id=0, bos_token_id=1, eos_token_id=2,
                                   decoder_start_token_id=1),
        # what follows the head
        "granite": t.GraniteConfig(**{**llama, "vocab_size": 32000}, logits_scaling=8.0),
        "gemma2_all": t.Gemma2Config(**{**llama, "vocab_size": 32000}, head_dim=32),
    }


# Beside the prompt in F32: the families whose prompt runs in BF16 too, and those that then take one more token.
IN_BF16 = {"llama", "qwen3", "gemma3", "gpt_neox", "opt", "bert", "t5", "mixtral", "qwen3_moe", "vit", "whisper"}
DECODING = {"llama", "gpt2", "mistral", "gemma3", "gpt_neox", "t5", "qwen3_moe", "whisper"}
# Settings of encoders and decoders, changed one by one.
CHANGED = {
    "t5": [{"num_layers": 5}, {"num_decoder_layers": 1}, {"d_kv": 64}, {"num_heads": 12}, {"feed_forward_proj": "gated-gelu"}, {"d_model": 320},
           {"d_ff": 1024}],
    "whisper": [{"decoder_layers": 1}, {"max_source_positions": 500}, {"decoder_ffn_dim": 1024}, {"encoder_attention_heads": 8}, {"encoder_layers": 4}, {"decoder_attention_heads": 8}, {"encoder_ffn_dim": 256}, {"num_mel_bins": 128}, {"d_model": 192}],
}
INPUTS = {"t5": "pairs", "whisper": "sound", "vit": "image", "siglip": "image", "clip": "image"}


def model_class(family, config):
    auto = {"bert": "AutoModel", "bert_512": "AutoModelForMaskedLM", "t5": "AutoModelForSeq2SeqLM",
            "whisper": "AutoModelForSpeechSeq2Seq", "vit": "AutoModel", "siglip": "AutoModel", "clip": "AutoModel"}
    return getattr(transformers, auto.get(family, "AutoModelForCausalLM"))._model_mapping[type(config)]


def projected(family, config, attention, past, sizes=None):
    batch, sequence = sizes or SIZES.get(family, (1, SEQUENCE))
    with tempfile.TemporaryDirectory() as folder:
        config.save_pretrained(folder)
        answer = json.loads(subprocess.run(
            [PROGRAM, "plan", f"{folder}/config.json", "--batch", str(batch), "--seq", str(1 if past and not sizes else sequence),
             "--past", str(past), "--profile", f"hf_{attention}", "--logits", "all" if family in ALL_LOGITS else "last",
             "--method", "staged_ring", "--json"], capture_output=True, text=True, check=True).stdout)
    # what the pass needs beside the weights, the growing cache included
    return answer["rows"][0]["peak"]["device"] - answer["bytes"]


def cases(family):
    """Types and tokens in the cache."""
    yield "float32", 0
    if family in IN_BF16:
        yield "bfloat16", 0
    if family in DECODING:
        yield "float32", PAST


@unittest.skipIf(torch is None, "needs torch and transformers")
class ForwardPass(unittest.TestCase):
    def check(self, family, config, attention, dtype, past):
        kind = model_class(family, config)
        config.architectures, config.dtype = [kind.__name__], dtype
        batch, sequence = SIZES.get(family, (1, SEQUENCE))
        # some cannot do without the logits of all tokens: a small vocabulary keeps them out of the peak
        given = Pass(load(kind, config, attention, getattr(torch, dtype)), batch, INPUTS.get(family, "tokens"),
                     family in ALL_LOGITS)
        real = (given.decode(past) if past else given.prefill(sequence)).peak
        ours = projected(family, config, attention, past)
        print(f"  {family:12} {attention:6} {dtype:8} past {past:3} traced {real:>10,} projected {ours:>10,} ratio {ours / real:.4f}")
        self.assertLess(abs(ours / real - 1), WITHIN)

    def test_peaks(self):
        torch.set_grad_enabled(False)
        self.addCleanup(torch.set_grad_enabled, True)
        for family, config in configs().items():
            for attention in ("eager", "sdpa"):
                if attention == "sdpa" and family in EAGER_ONLY:
                    continue
                for dtype, past in cases(family):
                    with self.subTest(family=family, attention=attention, dtype=dtype, past=past):
                        self.check(family, config, attention, dtype, past)

    def test_pieces_of_a_prompt(self):
        """A mask stands beside the scores or, in sdpa, beside the keys and values of all heads."""
        torch.set_grad_enabled(False)
        self.addCleanup(torch.set_grad_enabled, True)
        for family in ("llama", "mistral", "gemma3", "phi3", "deepseek_v3", "falcon", "bloom"):
            for attention in ("eager", "sdpa")[:1 if family in EAGER_ONLY else 2]:
                config = configs()[family]
                kind = model_class(family, config)
                config.architectures, config.dtype = [kind.__name__], "float32"
                batch, sequence, past = 3, 96, 300
                real = Pass(load(kind, config, attention, torch.float32), batch, "tokens").piece(sequence, past).peak
                ours = projected(family, config, attention, past, (batch, sequence))
                print(f"  {family:12} {attention:6} piece of {sequence} traced {real:>10,} projected {ours:>10,} ratio {ours / real:.4f}")
                with self.subTest(family=family, attention=attention):
                    self.assertLess(abs(ours / real - 1), WITHIN)

    def test_large_batches(self):
        """Positions are numbered once for all sequences (OPT: for each of them)."""
        torch.set_grad_enabled(False)
        self.addCleanup(torch.set_grad_enabled, True)
        for family in ("gpt2", "qwen3", "gemma3", "opt", "deepseek_v3"):
            config = configs()[family]
            kind = model_class(family, config)
            config.architectures, config.dtype = [kind.__name__], "float32"
            batch, sequence = 8, 160
            real = Pass(load(kind, config, "sdpa", torch.float32), batch, "tokens").prefill(sequence).peak
            ours = projected(family, config, "sdpa", 0, (batch, sequence))
            print(f"  {family:12} batch of {batch} traced {real:>10,} projected {ours:>10,} ratio {ours / real:.4f}")
            with self.subTest(family=family):
                self.assertLess(abs(ours / real - 1), WITHIN / 2)

    def test_peaks_under_changed_settings(self):
        torch.set_grad_enabled(False)
        self.addCleanup(torch.set_grad_enabled, True)
        for family, changes in CHANGED.items():
            for change in changes:
                config = configs()[family]
                with self.subTest(family=family, change=change):
                    self.check(family, type(config)(**{**config.to_dict(), **change}), "eager", "float32", 0)


if __name__ == "__main__":
    unittest.main()
