"""The architecture assets against transformers: what a configuration alone says its checkpoint holds is what
transformers saves for it."""

import json
import pathlib
import re
import tempfile
import unittest

from common import inspect, loadline
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

try:
    import transformers
except ImportError:
    transformers = None

DECODER = dict(vocab_size=100, hidden_size=64, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2,
               intermediate_size=96, max_position_embeddings=64)
ENCODER = dict(vocab_size=100, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96,
               max_position_embeddings=40)
TOWER = dict(hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=80, image_size=20, patch_size=6)
TEXT = dict(vocab_size=100, hidden_size=64, num_hidden_layers=3, num_attention_heads=4, intermediate_size=96,
            max_position_embeddings=20)
EXPERTS = dict(DECODER, num_experts=5, num_experts_per_tok=2, moe_intermediate_size=24)
LATENT = dict(DECODER, num_key_value_heads=4, kv_lora_rank=16, q_lora_rank=24, qk_nope_head_dim=12, qk_rope_head_dim=8,
              v_head_dim=20, n_routed_experts=8, n_shared_experts=2, moe_intermediate_size=24, first_k_dense_replace=1,
              num_experts_per_tok=2, n_group=2, topk_group=1)
T5 = dict(vocab_size=100, d_model=64, d_kv=12, d_ff=96, num_layers=2, num_decoder_layers=3, num_heads=5)
WHISPER = dict(vocab_size=100, d_model=64, encoder_layers=2, decoder_layers=3, encoder_attention_heads=4,
               decoder_attention_heads=2, encoder_ffn_dim=96, decoder_ffn_dim=80, max_source_positions=30,
               max_target_positions=20, num_mel_bins=8, pad_token_id=0)
GPT2 = dict(vocab_size=100, n_embd=64, n_layer=2, n_head=4, n_positions=32)
OPT = dict(vocab_size=100, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, ffn_dim=96)
FALCON = dict(vocab_size=100, hidden_size=64, num_hidden_layers=2, num_attention_heads=8)

# class, configuration's class and its arguments
CASES = [
    ("LlamaForCausalLM", "LlamaConfig", DECODER),
    ("LlamaForCausalLM", "LlamaConfig", dict(DECODER, attention_bias=True, mlp_bias=True, tie_word_embeddings=True, head_dim=24)),
    ("MistralForCausalLM", "MistralConfig", DECODER),
    ("Qwen2ForCausalLM", "Qwen2Config", dict(DECODER, tie_word_embeddings=True)),
    ("Qwen3ForCausalLM", "Qwen3Config", dict(DECODER, head_dim=24)),
    ("GemmaForCausalLM", "GemmaConfig", dict(DECODER, head_dim=24)),
    ("Gemma2ForCausalLM", "Gemma2Config", dict(DECODER, head_dim=24)),
    ("Gemma3ForCausalLM", "Gemma3TextConfig", dict(DECODER, head_dim=24)),
    ("GraniteForCausalLM", "GraniteConfig", DECODER),
    ("Olmo2ForCausalLM", "Olmo2Config", DECODER),
    ("Olmo2ForCausalLM", "Olmo2Config", dict(DECODER, attention_bias=True, tie_word_embeddings=True)),
    ("SmolLM3ForCausalLM", "SmolLM3Config", dict(DECODER, pad_token_id=0)),
    ("SmolLM3ForCausalLM", "SmolLM3Config", dict(DECODER, pad_token_id=0, tie_word_embeddings=False, attention_bias=True, mlp_bias=True)),
    ("MistralModel", "MistralConfig", DECODER),
    ("LlamaForSequenceClassification", "LlamaConfig", dict(DECODER, num_labels=5, pad_token_id=0)),
    ("Qwen2ForTokenClassification", "Qwen2Config", dict(DECODER, num_labels=7)),
    ("Gemma3ForConditionalGeneration", "Gemma3Config",
     dict(text_config=dict(DECODER, head_dim=24), vision_config=dict(TOWER, num_hidden_layers=1, image_size=12, patch_size=6),
          mm_tokens_per_image=4)),
    ("MixtralForCausalLM", "MixtralConfig", dict(DECODER, num_local_experts=5)),
    ("Qwen2MoeForCausalLM", "Qwen2MoeConfig", dict(EXPERTS, shared_expert_intermediate_size=40, mlp_only_layers=[1])),
    ("Qwen3MoeForCausalLM", "Qwen3MoeConfig", dict(EXPERTS, head_dim=24, decoder_sparse_step=2)),
    ("DeepseekV2ForCausalLM", "DeepseekV2Config", LATENT),
    ("DeepseekV2ForCausalLM", "DeepseekV2Config", dict(LATENT, q_lora_rank=None)),
    ("DeepseekV3ForCausalLM", "DeepseekV3Config", dict(LATENT, num_nextn_predict_layers=0)),
    ("GptOssForCausalLM", "GptOssConfig", dict(DECODER, num_local_experts=5, head_dim=24)),
    ("Llama4ForCausalLM", "Llama4TextConfig",
     dict(DECODER, intermediate_size_mlp=112, num_local_experts=3, interleave_moe_layer_step=2, head_dim=16)),
    ("Llama4ForConditionalGeneration", "Llama4Config",
     dict(text_config=dict(DECODER, intermediate_size_mlp=112, num_local_experts=3, interleave_moe_layer_step=2, head_dim=16),
          vision_config=dict(hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=128, image_size=28,
                             patch_size=14, vision_output_dim=32, projector_input_dim=32, projector_output_dim=32))),
    ("Phi3ForCausalLM", "Phi3Config", dict(DECODER, pad_token_id=0)),
    ("Phi3ForCausalLM", "Phi3Config", dict(DECODER, pad_token_id=0, tie_word_embeddings=True)),
    ("PhiForCausalLM", "PhiConfig", DECODER),
    ("PhiForCausalLM", "PhiConfig", dict(DECODER, qk_layernorm=True)),
    ("GPT2LMHeadModel", "GPT2Config", GPT2),
    ("GPT2Model", "GPT2Config", GPT2),
    ("GPTNeoXForCausalLM", "GPTNeoXConfig", ENCODER),
    ("GPTNeoXForCausalLM", "GPTNeoXConfig", dict(ENCODER, attention_bias=False, use_parallel_residual=False)),
    ("GPTNeoXModel", "GPTNeoXConfig", ENCODER),
    ("OPTForCausalLM", "OPTConfig", OPT),
    ("OPTForCausalLM", "OPTConfig",
     dict(OPT, word_embed_proj_dim=32, do_layer_norm_before=False)),
    ("OPTModel", "OPTConfig", OPT),
    ("BloomForCausalLM", "BloomConfig", dict(vocab_size=100, hidden_size=64, n_layer=2, n_head=4)),
    ("BloomModel", "BloomConfig", dict(vocab_size=100, hidden_size=64, n_layer=2, n_head=4)),
    ("FalconForCausalLM", "FalconConfig", FALCON),
    ("FalconForCausalLM", "FalconConfig", dict(FALCON, new_decoder_architecture=True, num_kv_heads=2)),
    ("FalconForCausalLM", "FalconConfig", dict(FALCON, multi_query=False, parallel_attn=False, alibi=True, bias=True)),
    ("FalconForCausalLM", "FalconConfig", dict(FALCON, new_decoder_architecture=True, num_kv_heads=2, num_ln_in_parallel_attn=1)),
    ("BertModel", "BertConfig", ENCODER),
    ("BertForMaskedLM", "BertConfig", ENCODER),
    ("BertForPreTraining", "BertConfig", ENCODER),
    ("BertForSequenceClassification", "BertConfig", dict(ENCODER, num_labels=5)),
    ("BertForSequenceClassification", "BertConfig", ENCODER),
    ("BertForTokenClassification", "BertConfig", dict(ENCODER, num_labels=9)),
    ("BertForQuestionAnswering", "BertConfig", ENCODER),
    ("RobertaModel", "RobertaConfig", ENCODER),
    ("RobertaForSequenceClassification", "RobertaConfig", dict(ENCODER, num_labels=3)),
    ("XLMRobertaForTokenClassification", "XLMRobertaConfig", dict(ENCODER, num_labels=9)),
    ("CamembertForQuestionAnswering", "CamembertConfig", ENCODER),
    ("RobertaForMaskedLM", "RobertaConfig", ENCODER),
    ("XLMRobertaModel", "XLMRobertaConfig", ENCODER),
    ("XLMRobertaForMaskedLM", "XLMRobertaConfig", ENCODER),
    ("CamembertForMaskedLM", "CamembertConfig", ENCODER),
    ("MPNetModel", "MPNetConfig", ENCODER),
    ("MPNetForMaskedLM", "MPNetConfig", ENCODER),
    ("MPNetForSequenceClassification", "MPNetConfig", dict(ENCODER, num_labels=3)),
    ("DistilBertForSequenceClassification", "DistilBertConfig",
     dict(vocab_size=100, dim=64, n_layers=2, n_heads=4, hidden_dim=96, num_labels=4)),
    ("DistilBertModel", "DistilBertConfig", dict(vocab_size=100, dim=64, n_layers=2, n_heads=4, hidden_dim=96)),
    ("DistilBertForMaskedLM", "DistilBertConfig", dict(vocab_size=100, dim=64, n_layers=2, n_heads=4, hidden_dim=96)),
    ("T5ForConditionalGeneration", "T5Config", T5),
    ("T5ForConditionalGeneration", "T5Config", dict(T5, feed_forward_proj="gated-gelu", tie_word_embeddings=False)),
    ("T5EncoderModel", "T5Config", T5),
    ("MT5ForConditionalGeneration", "MT5Config", T5),
    ("WhisperForConditionalGeneration", "WhisperConfig", WHISPER),
    ("WhisperModel", "WhisperConfig", WHISPER),
    ("WhisperForCausalLM", "WhisperConfig", WHISPER),
    ("ViTModel", "ViTConfig", TOWER),
    ("ViTForImageClassification", "ViTConfig", dict(TOWER, num_labels=12)),
    ("CLIPModel", "CLIPConfig", dict(text_config=dict(TEXT, projection_dim=24), vision_config=TOWER, projection_dim=24)),
    ("CLIPTextModel", "CLIPTextConfig", TEXT),
    ("CLIPTextModelWithProjection", "CLIPTextConfig", dict(TEXT, projection_dim=24)),
    ("CLIPVisionModel", "CLIPVisionConfig", TOWER),
    ("CLIPVisionModelWithProjection", "CLIPVisionConfig", dict(TOWER, projection_dim=24)),
    ("SiglipModel", "SiglipConfig", dict(text_config=TEXT, vision_config=TOWER)),
    ("SiglipTextModel", "SiglipTextConfig", TEXT),
    ("SiglipVisionModel", "SiglipVisionConfig", dict(TOWER, vision_use_head=False)),
    ("CLIPForImageClassification", "CLIPConfig", dict(text_config=TEXT, vision_config=TOWER, num_labels=7)),
    ("SiglipForImageClassification", "SiglipConfig", dict(text_config=TEXT, vision_config=TOWER)),
    ("BertLMHeadModel", "BertConfig", ENCODER),
    ("BertForMultipleChoice", "BertConfig", ENCODER),
    ("RobertaForCausalLM", "RobertaConfig", ENCODER),
    ("Qwen3ForSequenceClassification", "Qwen3Config", dict(DECODER, head_dim=24, num_labels=1)),
    ("MistralForQuestionAnswering", "MistralConfig", DECODER),
    ("DeepseekV3ForSequenceClassification", "DeepseekV3Config", dict(LATENT, num_nextn_predict_layers=0)),
    ("MixtralForTokenClassification", "MixtralConfig", dict(DECODER, num_local_experts=5)),
    ("GptOssForSequenceClassification", "GptOssConfig", dict(DECODER, num_local_experts=5, head_dim=24)),
    ("Phi3ForTokenClassification", "Phi3Config", dict(DECODER, pad_token_id=0)),
    ("PhiForSequenceClassification", "PhiConfig", DECODER),
    ("Olmo2ForSequenceClassification", "Olmo2Config", DECODER),
    ("GPT2ForSequenceClassification", "GPT2Config", dict(GPT2, num_labels=4)),
    ("GPT2ForTokenClassification", "GPT2Config", GPT2),
    ("GPTNeoXForTokenClassification", "GPTNeoXConfig", ENCODER),
    ("BloomForTokenClassification", "BloomConfig", dict(vocab_size=100, hidden_size=64, n_layer=2, n_head=4)),
    ("FalconForQuestionAnswering", "FalconConfig", FALCON),
    ("OPTForSequenceClassification", "OPTConfig", OPT),
    ("OPTForQuestionAnswering", "OPTConfig", OPT),
    ("MambaForCausalLM", "MambaConfig", dict(vocab_size=100, hidden_size=64, num_hidden_layers=2)),
    ("MambaForCausalLM", "MambaConfig", dict(vocab_size=100, hidden_size=64, num_hidden_layers=2, use_bias=True, expand=3)),
    ("Mamba2ForCausalLM", "Mamba2Config",
     dict(vocab_size=100, hidden_size=64, num_hidden_layers=2, num_heads=8, head_dim=16, n_groups=2, state_size=24)),
]


def renamed(tensors, *changes):
    for old, new in changes:
        tensors = {re.sub(old, new, name): tensor for name, tensor in tensors.items()}
    return tensors


def old_bert(tensors):
    extra = {"bert.embeddings.position_ids": torch.arange(40)[None], "cls.predictions.decoder.weight": torch.zeros(100, 64),
             "cls.predictions.decoder.bias": torch.zeros(100), "bert.pooler.dense.weight": torch.zeros(64, 64),
             "bert.pooler.dense.bias": torch.zeros(64), "cls.seq_relationship.weight": torch.zeros(2, 64),
             "cls.seq_relationship.bias": torch.zeros(2)}
    return renamed(tensors | extra, (r"LayerNorm\.weight$", "LayerNorm.gamma"), (r"LayerNorm\.bias$", "LayerNorm.beta"))


def bert_without_its_prefix(tensors):
    return renamed(tensors, (r"^bert\.", "")) | {"embeddings.position_ids": torch.arange(40)[None]}


def classified(tensors):
    return tensors | {"classifier.weight": torch.zeros(700, 64), "classifier.bias": torch.zeros(700)}


def canonical_gpt2(tensors):
    masks = {f"h.{i}.attn.bias": torch.ones(1, 1, 32, 32) for i in range(2)}
    return renamed(tensors, (r"^transformer\.", "")) | masks


def pythia(tensors):
    buffers = {}
    for i in range(2):
        prefix = f"gpt_neox.layers.{i}.attention."
        buffers |= {prefix + "bias": torch.ones(1, 1, 40, 40, dtype=torch.bool), prefix + "masked_bias": torch.tensor(-1e9),
                    prefix + "rotary_emb.inv_freq": torch.zeros(2)}
    return tensors | buffers


def old_t5(tensors):
    name = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"
    return tensors | {name: torch.zeros(32, 5), "encoder.embed_tokens.weight": torch.zeros(100, 64),
                      "decoder.embed_tokens.weight": torch.zeros(100, 64)}


def own_t5_head(tensors):
    return tensors | {"lm_head.weight": torch.zeros(100, 64)}


def llama_2(tensors):
    return tensors | {f"model.layers.{i}.self_attn.rotary_emb.inv_freq": torch.zeros(8) for i in range(3)}


def without_model(tensors):
    return renamed(tensors, (r"^model\.", ""))


def beside_a_vision_tower(tensors):
    extra = {"vision_tower.vision_model.x.weight": torch.zeros(500, 500), "multi_modal_projector.x": torch.zeros(500, 500)}
    return renamed(tensors, (r"^", "language_model.")) | extra


def head_stored_twice(tensors):
    return tensors | {"lm_head.weight": torch.zeros(100, 64)}


def with_position_ids(tensors):
    return tensors | {"text_model.embeddings.position_ids": torch.arange(20)[None],
                      "vision_model.embeddings.position_ids": torch.arange(10)[None]}


def text_model_prefix(tensors):
    return renamed(tensors, (r"^", "text_model."))


# class, configuration's class and its arguments, what its file is changed to
DRIFTS = [
    ("BertForMaskedLM", "BertConfig", ENCODER, old_bert),
    ("BertForMaskedLM", "BertConfig", ENCODER, bert_without_its_prefix),
    ("RobertaForMaskedLM", "RobertaConfig", ENCODER, classified),
    ("GPT2LMHeadModel", "GPT2Config", GPT2, canonical_gpt2),
    ("GPTNeoXForCausalLM", "GPTNeoXConfig", ENCODER, pythia),
    ("T5ForConditionalGeneration", "T5Config", T5, old_t5),
    ("T5ForConditionalGeneration", "T5Config", T5, own_t5_head),
    ("LlamaForCausalLM", "LlamaConfig", DECODER, llama_2),
    ("MistralForCausalLM", "MistralConfig", DECODER, without_model),
    ("MixtralForCausalLM", "MixtralConfig", dict(DECODER, num_local_experts=5), without_model),
    ("Gemma3ForCausalLM", "Gemma3TextConfig", dict(DECODER, head_dim=24), beside_a_vision_tower),
    ("FalconForCausalLM", "FalconConfig", FALCON, head_stored_twice),
    ("OPTForCausalLM", "OPTConfig", OPT, without_model),
    ("CLIPModel", "CLIPConfig", dict(text_config=dict(TEXT, projection_dim=24), vision_config=TOWER, projection_dim=24), with_position_ids),
    ("CLIPTextModel", "CLIPTextConfig", TEXT, text_model_prefix),
]

# where transformers saves other prefixes than the published checkpoints have, which the assets name
PREFIXES = {"GPT2LMHeadModel": ("transformer.", ""), "GPT2ForSequenceClassification": ("transformer.", ""),
            "GPT2ForTokenClassification": ("transformer.", ""), "CLIPTextModel": ("", "text_model."), "CLIPVisionModel": ("", "vision_model."),
            "SiglipTextModel": ("", "text_model."), "SiglipVisionModel": ("", "vision_model.")}
# parts that the assets leave to "ignore"
NOT_DESCRIBED = {"Gemma3ForConditionalGeneration": ("vision_tower.", "multi_modal_projector."),
                 "Llama4ForConditionalGeneration": ("vision_model.", "multi_modal_projector.")}


@unittest.skipIf(transformers is None, "transformers is not installed")
class Architectures(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)
        transformers.logging.set_verbosity_error()
        transformers.logging.disable_progress_bar()

    def save(self, model, config, arguments):
        folder = self.path / "saved"
        getattr(transformers, model)(getattr(transformers, config)(**arguments)).save_pretrained(folder)
        tensors = {}
        with safe_open(folder / "model.safetensors", "pt") as file:
            for name in file.keys():
                part = file.get_slice(name)
                tensors[name] = (part.get_dtype(), part.get_shape())
        theirs, ours = PREFIXES.get(model, ("", ""))
        return folder, {ours + name.removeprefix(theirs): tensor for name, tensor in tensors.items()}

    def assert_planned(self, path):
        forward = json.loads(loadline("plan", path, "--seq", 16, "--json"))["forward"]
        self.assertEqual(forward["source"], "architecture", forward)
        self.assertEqual(forward["unknown_values"], 0)
        self.assertGreater(forward["activation_peak"], 0)

    def test_configurations_ask_for_what_transformers_saves(self):
        for model, config, arguments in CASES:
            with self.subTest(model=model, arguments=arguments), tempfile.TemporaryDirectory() as inside:
                self.path = pathlib.Path(inside)
                folder, saved = self.save(model, config, arguments)
                self.assert_planned(folder)
                (folder / "model.safetensors").unlink()
                tensors = inspect(folder / "config.json")["tensors"]
                asked = {tensor["name"]: (tensor["dtype"], tensor["shape"]) for tensor in tensors}
                others = NOT_DESCRIBED.get(model, ())
                saved = {name: tensor for name, tensor in saved.items() if not name.startswith(others)}
                self.assertEqual(saved, asked)

    def test_files_as_older_writers_left_them(self):
        for model, config, arguments, change in DRIFTS:
            with self.subTest(model=model, change=change.__name__), tempfile.TemporaryDirectory() as inside:
                self.path = pathlib.Path(inside)
                folder, _ = self.save(model, config, arguments)
                save_file(change(load_file(folder / "model.safetensors")), folder / "model.safetensors")
                self.assert_planned(folder)

    def test_a_tensor_that_nothing_asks_for_is_seen(self):
        for model, config, arguments in CASES[:1] + CASES[-1:]:
            with self.subTest(model=model):
                folder, _ = self.save(model, config, arguments)
                tensors = load_file(folder / "model.safetensors")
                save_file(tensors | {"adapter.weight": torch.zeros(1000, 1000)}, folder / "model.safetensors")
                forward = json.loads(loadline("plan", folder, "--seq", 16, "--json"))["forward"]
                self.assertIn("unexplained", forward["remark"])
                self.assertNotIn("activation_peak", forward)
                self.assertEqual(inspect(folder)["unclaimed"], ["adapter.weight"])

    def test_a_family_that_nobody_knows_gets_bounds_alone(self):
        folder, _ = self.save("LlamaForCausalLM", "LlamaConfig", DECODER)
        config = json.loads((folder / "config.json").read_text())
        config |= {"architectures": ["NewForCausalLM"], "model_type": "new"}
        (folder / "config.json").write_text(json.dumps(config))
        forward = json.loads(loadline("plan", folder, "--batch", 2, "--seq", 16, "--json"))["forward"]
        self.assertEqual(forward["source"], "estimate")
        self.assertEqual(forward["activation_lower_bound"], 2 * 16 * 96 * 4)
        self.assertEqual(forward["kv_bytes"], 2 * 16 * 2 * 3 * 2 * 16 * 4)
        self.assertNotIn("activation_peak", forward)
        text = loadline("plan", folder, "--seq", 16)
        self.assertIn("no asset for NewForCausalLM", text)
        self.assertIn("activations at least", text)

    def test_synthesised_checkpoints_are_whole(self):
        for model, config, arguments in CASES:
            with self.subTest(model=model, arguments=arguments), tempfile.TemporaryDirectory() as inside:
                path = pathlib.Path(inside)
                written = getattr(transformers, config)(**arguments, architectures=[model])
                written.save_pretrained(path)
                loadline("synth", path / "config.json", path / "out", "--sparse")
                self.assert_planned(path / "out")
                self.assertEqual(len(inspect(path / "config.json")["tensors"]), len(inspect(path / "out")["tensors"]))


if __name__ == "__main__":
    unittest.main()
