"""Caches of families that Loadline does not describe: its estimate beside what the caches of transformers hold, of
small models in bfloat16 on torch's meta device. LOADLINE_ALL_TYPES=1 adds every type that transformers has, in its usual size."""

import collections
import json
import os
import pathlib
import tempfile
import unittest

from common import loadline
import torch
from safetensors.torch import save_file

try:
    import transformers
except ImportError:
    transformers = None

SMALL = dict(vocab_size=320, hidden_size=64, intermediate_size=96, num_hidden_layers=8, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=4096)
DELTA = dict(head_dim=32, linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=16, linear_value_head_dim=16)
EXPERTS = dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=48, shared_expert_intermediate_size=48)
LATENT = dict(num_key_value_heads=4, kv_lora_rank=32, q_lora_rank=24, qk_nope_head_dim=16, qk_rope_head_dim=8, v_head_dim=12,
              n_routed_experts=4, num_experts_per_tok=2, moe_intermediate_size=48)
MAMBA = dict(mamba_n_heads=8, mamba_d_head=16, mamba_d_state=8, mamba_n_groups=1)
GEMMA = dict(num_hidden_layers=12, head_dim=16, sliding_window=128, hidden_size_per_layer_input=16,
             vocab_size_per_layer_input=320)

# model type: settings; None leaves out one of the above
CASES = {
    "qwen3_5_text": DELTA, "qwen3_next": dict(DELTA, **EXPERTS), "qwen3_5_moe_text": dict(DELTA, **EXPERTS),
    "gemma4_text": dict(GEMMA, global_head_dim=32), "afmoe": dict(head_dim=16, sliding_window=128),
    "lfm2": dict(layer_types=["conv", "conv", "full_attention", "conv"] * 2, conv_L_cache=3, block_auto_adjust_ff_dim=False),
    "jamba": dict(attn_layer_period=4, attn_layer_offset=1, num_experts=2, mamba_d_state=8, mamba_dt_rank=4, use_mamba_kernels=False),
    "falcon_h1": dict(head_dim=16, mamba_d_ssm=64, mamba_n_heads=4, mamba_d_head=16, mamba_d_state=8, mamba_n_groups=1),
    "granitemoehybrid": dict(MAMBA, layer_types=["mamba", "mamba", "attention", "mamba"] * 2, num_local_experts=2,
                             num_experts_per_tok=1, shared_intermediate_size=48),
    "bamba": dict(MAMBA, attn_layer_indices=[2, 6]), "glm4_moe_lite": LATENT, "cohere2": dict(sliding_window=128),
    "minimax": dict(head_dim=16, num_local_experts=2, num_experts_per_tok=1), "olmo3": dict(sliding_window=128),
    "deepseek_v4": dict(head_dim=32), "phimoe": dict(sliding_window=128), "stablelm": {}, "cohere": {}, "starcoder2": {},
    "prophetnet": dict(num_hidden_layers=None, num_attention_heads=None, num_key_value_heads=None, intermediate_size=None,
                       num_encoder_layers=3, num_decoder_layers=3, num_encoder_attention_heads=2, num_decoder_attention_heads=4,
                       encoder_ffn_dim=96, decoder_ffn_dim=96),
    "gpt_bigcode": dict(n_embd=64, n_layer=4, n_head=4, n_positions=4096),
    "rwkv": dict(num_attention_heads=None, num_key_value_heads=None),
    "xlstm": dict(hidden_size=256, num_attention_heads=None, num_key_value_heads=None, intermediate_size=None, num_heads=2),
}
# families that Loadline describes, whose states do not grow: equal
DESCRIBED = {"mamba": dict(state_size=8), "mamba2": dict(num_heads=8, head_dim=16, state_size=8, n_groups=1), "falcon_mamba": dict(state_size=8)}
TOKENS = (128, 1100)
BASE = dict(torch_dtype="bfloat16", vocab_size=1000, hidden_size=64, intermediate_size=64)
FULL, SLIDING, LINEAR, CONV = "full_attention", "sliding_attention", "linear_attention", "conv"


def nested(architecture, kind, **text):
    return dict(architectures=[architecture], model_type=kind, text_config=dict(BASE, model_type=kind + "_text", **text))


# Settings of published models: a configuration, and what its keys and values take of 32,768 tokens, by arithmetic.
PUBLISHED = {
    "Gemma 4 31B": (nested(
        "Gemma4ForConditionalGeneration", "gemma4", num_hidden_layers=60, num_attention_heads=32, num_key_value_heads=16, head_dim=256,
        global_head_dim=512, num_global_key_value_heads=4, attention_k_eq_v=True, sliding_window=1024, num_kv_shared_layers=0,
        layer_types=([SLIDING] * 5 + [FULL]) * 10), 50 * 1024 * 2 * 16 * 256 * 2 + 10 * 32768 * 2 * 4 * 512 * 2),
    "Gemma 4 E4B": (nested(
        "Gemma4ForConditionalGeneration", "gemma4", num_hidden_layers=42, num_attention_heads=8, num_key_value_heads=2, head_dim=256,
        global_head_dim=512, sliding_window=512, num_kv_shared_layers=18, layer_types=([SLIDING] * 5 + [FULL]) * 7),
        20 * 512 * 2 * 2 * 256 * 2 + 4 * 32768 * 2 * 2 * 512 * 2),
    "Gemma 3n E4B": (nested(
        "Gemma3nForConditionalGeneration", "gemma3n", num_hidden_layers=35, num_attention_heads=8, num_key_value_heads=2, head_dim=256,
        sliding_window=512, num_kv_shared_layers=15, layer_types=([SLIDING] * 4 + [FULL]) * 7),
        4 * 32768 * 2 * 2 * 256 * 2 + 16 * 512 * 2 * 2 * 256 * 2),
    "GLM-4.7-Flash": (dict(
        BASE, architectures=["Glm4MoeLiteForCausalLM"], model_type="glm4_moe_lite", num_hidden_layers=47, num_attention_heads=20,
        num_key_value_heads=20, kv_lora_rank=512, q_lora_rank=768, qk_nope_head_dim=192, qk_rope_head_dim=64, v_head_dim=256), 47 * 32768 * 576 * 2),
    "gpt-oss 20B": (dict(
        BASE, architectures=["GptOssForCausalLM"], model_type="gpt_oss", num_hidden_layers=24, num_attention_heads=64, num_key_value_heads=8,
        head_dim=64, sliding_window=128, layer_types=[SLIDING, FULL] * 12), 12 * 2 * 8 * 64 * 2 * (32768 + 128)),
    "DeciLM": (dict(
        BASE, architectures=["DeciLMForCausalLM"], model_type="nemotron-nas", num_hidden_layers=4, num_attention_heads=32, num_key_value_heads=None,
        block_configs=[{"attention": {"n_heads_in_group": 8, "no_op": False}}, {"attention": {"n_heads_in_group": None, "no_op": True}},
                       {"attention": {"n_heads_in_group": 16, "no_op": False}}, {"attention": {"n_heads_in_group": None, "no_op": True}}]),
        32768 * 2 * 2 * 2 * (4 + 2)),
    "ChatGLM": (dict(
        architectures=["ChatGLMForConditionalGeneration"], model_type="chatglm", torch_dtype="bfloat16", num_layers=28, hidden_size=4096, num_attention_heads=32,
        kv_channels=128, multi_query_attention=True, multi_query_group_num=2, padded_vocab_size=1000, ffn_hidden_size=64), 28 * 32768 * 2 * 2 * 128 * 2),
    "Step 3.5": (dict(
        BASE, architectures=["Step3p5ForCausalLM"], model_type="step3p5", num_hidden_layers=45, num_attention_heads=64, num_attention_groups=8,
        head_dim=128, sliding_window=512, layer_types=([FULL] + [SLIDING] * 3) * 11 + [FULL],
        attention_other_setting=dict(attention_type=SLIDING, num_attention_heads=96, num_attention_groups=8, head_dim=128)),
        (12 * 32768 + 33 * 512) * 2 * 8 * 128 * 2),
    # beside states: of linear attention 48 times 3 inputs of 10,240 and 48 matrices of 128 by 128; of others no setting says how large
    "Qwen3.5 27B": (nested(
        "Qwen3_5ForConditionalGeneration", "qwen3_5", num_hidden_layers=64, num_attention_heads=24, num_key_value_heads=4, head_dim=256,
        full_attention_interval=4, layer_types=([LINEAR] * 3 + [FULL]) * 16, linear_num_key_heads=16, linear_num_value_heads=48,
        linear_key_head_dim=128, linear_value_head_dim=128, linear_conv_kernel_dim=4), 16 * 32768 * 2 * 4 * 256 * 2),
    "Jamba 1.5 Mini": (dict(
        BASE, architectures=["JambaForCausalLM"], model_type="jamba", num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=8,
        head_dim=128, attn_layer_period=8, attn_layer_offset=4), 4 * 32768 * 2 * 8 * 128 * 2),
    "LFM2": (dict(
        BASE, architectures=["Lfm2ForCausalLM"], model_type="lfm2", num_hidden_layers=16, num_attention_heads=32, num_key_value_heads=8,
        layer_types=[CONV, CONV, FULL] * 3 + [CONV, FULL] * 3 + [CONV]), 6 * 32768 * 2 * 8 * 2 * 2),
}
WITH_STATES = {"Qwen3.5 27B": 0.08, "Jamba 1.5 Mini": 0.01, "LFM2": 0.12}  # which are at most so much of the rest
# encoders and decoders: settings, each changed once
BART = dict(d_model=64, encoder_layers=2, decoder_layers=3, encoder_attention_heads=2, decoder_attention_heads=4, encoder_ffn_dim=96,
            decoder_ffn_dim=96, vocab_size=320, max_position_embeddings=256, pad_token_id=0)
T5 = dict(d_model=64, d_kv=12, d_ff=96, num_layers=2, num_decoder_layers=3, num_heads=4, vocab_size=320)
PAIRS = {"bart": BART, "mbart": BART, "marian": dict(BART, decoder_start_token_id=0), "pegasus": BART, "blenderbot": BART,
         "t5": T5, "mt5": T5, "umt5": T5, "longt5": T5}
CHANGES = [{}, {"d_model": 128}, {"encoder_layers": 4}, {"decoder_layers": 1}, {"encoder_attention_heads": 8}, {"decoder_attention_heads": 8},
           {"num_layers": 4}, {"num_decoder_layers": 1}, {"num_heads": 8}, {"d_kv": 24}, {"scale_embedding": True}, {"tie_word_embeddings": False},
           {"share_encoder_decoder_embeddings": False}, {"max_position_embeddings": 512}, {"is_gated_act": True}]


def held(value, seen):
    """Bytes of all tensors in a cache, but for the window's width that a layer keeps as one."""
    if id(value) in seen:
        return 0
    seen.add(id(value))
    if isinstance(value, torch.Tensor):
        return value.numel() * value.element_size() if value.dim() else 0
    if isinstance(value, dict):
        return sum(held(one, seen) for one in value.values())
    if isinstance(value, (list, tuple)):
        return sum(held(one, seen) for one in value)
    own = type(value).__module__.startswith("transformers")
    return sum(held(one, seen) for name, one in vars(value).items() if name != "config") if own else 0


@unittest.skipIf(transformers is None, "transformers is not installed")
class CacheEstimates(unittest.TestCase):
    def test_estimates(self):
        print(f"transformers {transformers.__version__}")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        judged, only_settings = 0, set()
        for kind, more in CASES.items():
            try:
                settings = {name: value for name, value in dict(SMALL, **more).items() if value is not None}
                config = transformers.AutoConfig.for_model(kind, **settings)
                with torch.device("meta"):
                    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).eval()
            except (ValueError, KeyError, TypeError) as error:
                print(f"  {kind}: not in this version: {str(error)[:80]}")
                continue
            path = pathlib.Path(folder.name) / kind
            model.config.architectures = [type(model).__name__]
            model.config.save_pretrained(path)
            save_file({"model.x.weight": torch.zeros(8, 8, dtype=torch.bfloat16)}, path / "model.safetensors")
            for tokens in TOKENS:
                with self.subTest(kind=kind, tokens=tokens), torch.no_grad():
                    out = model(input_ids=torch.zeros((1, tokens), dtype=torch.long, device="meta"), use_cache=True)
                    right = held(next(value for name in ("past_key_values", "cache_params", "state") if (value := getattr(out, name, None)) is not None), set())
                    told = json.loads(loadline("plan", path, "--method", "staged_ring", "--seq", 1, "--past", tokens - 1,
                                               "--cache-dtype", "bf16", "--json"))["forward"]
                    least, most = told["kv_bytes_least"], told["kv_bytes"]
                    print(f"  {kind} {tokens}: {least:,} to {most:,}, transformers {right:,} {told['kv_notes']}")
                    self.assertEqual(told["source"], "estimate")
                    self.assertGreater(right, 0)
                    self.assertLessEqual(least, right * 1.01)
                    self.assertGreaterEqual(most, right * 0.99)
                    if not told["kv_notes"]:
                        self.assertLessEqual(most, right * 1.01)
                    # the settings alone say as much of the cache, and nothing of weights whose shapes are not known
                    alone = json.loads(loadline("plan", path / "config.json", "--method", "staged_ring", "--seq", 1, "--past", tokens - 1,
                                                "--cache-dtype", "bf16", "--json"))
                    if alone["forward"]["source"] == "estimate":
                        self.assertEqual((alone["forward"]["kv_bytes_least"], alone["forward"]["kv_bytes"]), (least, most))
                        self.assertIn(model.config.architectures[0], alone["incomplete"])
                        self.assertEqual(alone["bytes"], 0)
                        only_settings.add(kind)
            judged += 1
        self.assertGreaterEqual(judged, 12)
        self.assertGreaterEqual(len(only_settings), 10)

    def test_published_settings(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        for name, (config, right) in PUBLISHED.items():
            path = pathlib.Path(folder.name) / name / "config.json"
            path.parent.mkdir()
            path.write_text(json.dumps(config))
            save_file({"model.embed_tokens.weight": torch.zeros(8, 8, dtype=torch.bfloat16)}, path.parent / "model.safetensors")
            for of in (path.parent, path):
                told = json.loads(loadline("plan", of, "--method", "staged_ring", "--seq", 1, "--past", 32767, "--json"))
                with self.subTest(name, alone=of == path):
                    if told["forward"]["source"] == "nothing" or "kv_bytes" not in told["forward"]:
                        self.fail(told["forward"])
                    least, most = told["forward"].get("kv_bytes_least", told["forward"]["kv_bytes"]), told["forward"]["kv_bytes"]
                    if name in WITH_STATES:
                        self.assertGreaterEqual(least, right)
                        self.assertLessEqual(most, right * (1 + WITH_STATES[name]))
                    else:
                        self.assertEqual((least, most), (right, right))

    def test_encoders_and_decoders(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path, tokens, judged = pathlib.Path(folder.name), 40, 0
        ids = torch.zeros((1, tokens), dtype=torch.long, device="meta")
        save_file({"model.x.weight": torch.zeros(8, 8, dtype=torch.bfloat16)}, path / "model.safetensors")
        for kind, usual in PAIRS.items():
            for change in CHANGES:
                if change and next(iter(change)) not in transformers.AutoConfig.for_model(kind).to_dict():
                    continue
                config = transformers.AutoConfig.for_model(kind, **dict(usual, **change))
                with torch.device("meta"):
                    model = transformers.AutoModelForSeq2SeqLM.from_config(config, dtype=torch.bfloat16, attn_implementation="eager").eval()
                model.config.architectures = [type(model).__name__]
                model.config.save_pretrained(path)
                with self.subTest(kind=kind, change=change), torch.no_grad():
                    right = held(model(input_ids=ids, decoder_input_ids=ids, use_cache=True).past_key_values, set())
                    told = json.loads(loadline("plan", path, "--method", "staged_ring", "--seq", 1, "--past", tokens - 1,
                                               "--cache-dtype", "bf16", "--json"))["forward"]
                    least, most = told["kv_bytes_least"], told["kv_bytes"]
                    # the text that the encoder reads is taken to be as long, as a note says
                    self.assertEqual(most, right, told["kv_notes"])
                    self.assertLessEqual(least, right)
                judged += 1
        print(f"  {judged} configurations of encoders and decoders")
        self.assertGreater(judged, 50)

    @unittest.skipUnless(os.environ.get("LOADLINE_ALL_TYPES"), "takes a quarter of an hour: LOADLINE_ALL_TYPES=1")
    def test_all_types(self):
        """As each type's own configuration has it, judged wherever a text alone can be read on the meta device."""
        from transformers.models.auto import modeling_auto as auto
        from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES
        tables = (auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
                  auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES, auto.MODEL_MAPPING_NAMES)
        transformers.logging.set_verbosity_error()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path, tokens, verdicts = pathlib.Path(folder.name), 128, {}
        ids = torch.zeros((1, tokens), dtype=torch.long, device="meta")
        for kind in sorted(set(CONFIG_MAPPING_NAMES) - {"dia"}):  # whose sound has channels: a test of its own
            names = next((table[kind] for table in tables if kind in table), None)
            if names is None:
                continue
            try:
                config = transformers.AutoConfig.for_model(kind)
                made = getattr(transformers, names if isinstance(names, str) else names[0])
                with torch.device("meta"):
                    model = made._from_config(config, dtype=torch.bfloat16, attn_implementation="eager").eval()
                texts = {"input_ids": ids, **({"decoder_input_ids": ids} if config.is_encoder_decoder else {})}
                with torch.no_grad():
                    out = model(**texts, use_cache=True)
            except Exception:  # needs pictures or sounds, or what a device without numbers cannot do
                continue
            cache = next((value for value in (getattr(out, name, None) for name in ("past_key_values", "cache_params", "state"))
                          if value is not None), None)
            right = 0 if cache is None else held(cache, set())
            if right == 0:
                continue
            model.config.architectures = [made.__name__]
            model.config.save_pretrained(path)
            save_file({"model.x.weight": torch.zeros(8, 8, dtype=torch.bfloat16)}, path / "model.safetensors")
            for way, of in (("beside weights", path), ("alone", path / "config.json")):
                told = json.loads(loadline("plan", of, "--method", "staged_ring", "--seq", 1, "--past", tokens - 1,
                                           "--cache-dtype", "bf16", "--json")).get("forward", {})
                most, least = told.get("kv_bytes"), told.get("kv_bytes_least", told.get("kv_bytes"))
                if most is None:
                    verdict = "no figure"
                elif abs(most / right - 1) <= 0.01 and least >= right * 0.99:
                    verdict = "within 1 %"
                else:
                    verdict = "a range that holds it" if least <= right * 1.01 and most >= right * 0.99 else (least, most, right)
                verdicts[kind, way] = verdict
        for one in ("beside weights", "alone"):
            mine = {kind: verdict for (kind, way), verdict in verdicts.items() if way == one}
            counts = collections.Counter(verdict if isinstance(verdict, str) else "wrong" for verdict in mine.values())
            print(f"  {len(mine)} types with a cache, settings {one}: {dict(counts)}")
            self.assertGreater(counts["within 1 %"], 150)
            self.assertEqual({kind: verdict for kind, verdict in mine.items() if not isinstance(verdict, str) or verdict == "no figure"}, {})

    def test_speech_of_several_channels(self):
        """Dia decodes a token in nine channels at once, which are no further tokens; its text has heads of another number."""
        config = transformers.AutoConfig.for_model("dia")
        with torch.device("meta"):
            model = transformers.DiaForConditionalGeneration._from_config(config, attn_implementation="eager", dtype=torch.bfloat16).eval()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path, tokens = pathlib.Path(folder.name), 40
        model.config.architectures = [type(model).__name__]
        model.config.save_pretrained(path)
        save_file({"model.x.weight": torch.zeros(8, 8, dtype=torch.bfloat16)}, path / "model.safetensors")
        with torch.no_grad():
            ids = torch.zeros((1, tokens), dtype=torch.long, device="meta")
            sound = torch.zeros((1, tokens, config.decoder_config.num_channels), dtype=torch.long, device="meta")
            right = held(model(input_ids=ids, decoder_input_ids=sound, use_cache=True).past_key_values, set())
        told = json.loads(loadline("plan", path, "--method", "staged_ring", "--seq", 1, "--past", tokens - 1, "--cache-dtype", "bf16", "--json"))
        self.assertEqual(told["forward"]["kv_bytes"], right)

    def test_states_of_described_families(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        for kind, more in DESCRIBED.items():
            config = transformers.AutoConfig.for_model(kind, vocab_size=320, hidden_size=64, num_hidden_layers=4, **more)
            with torch.device("meta"):
                model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).eval()
            path = pathlib.Path(folder.name) / kind
            model.config.architectures = [type(model).__name__]
            model.config.save_pretrained(path)
            with self.subTest(kind=kind), torch.no_grad():
                out = model(input_ids=torch.zeros((1, 64), dtype=torch.long, device="meta"), use_cache=True)
                right = held(out.past_key_values if hasattr(out, "past_key_values") else out.cache_params, set())
                told = json.loads(loadline("plan", path, "--method", "staged_ring", "--seq", 1, "--past", 63, "--cache-dtype", "bf16", "--json"))
                print(f"  {kind}: {told['forward']['kv_bytes']:,}, transformers {right:,}")
                self.assertEqual((told["forward"]["source"], told["forward"]["kv_bytes"]), ("architecture", right))
