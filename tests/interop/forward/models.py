"""Models with the sizes that their authors publish; two layers of the large ones, since all layers are alike."""

from dataclasses import dataclass, field


@dataclass
class Model:
    config: str  # a class of transformers
    kind: str  # the model's class
    sizes: dict  # what the published config.json says, where it is not the class's default
    inputs: str = "tokens"  # or "image", "sound", "pairs" (source and target)
    sequence: int = 512  # of the prefill
    past: int = 768  # of the step of decoding; 0: there is none
    batch: int = 1
    attentions: tuple = ("eager", "sdpa")
    dtypes: tuple = ("float32", "bfloat16")
    explained: dict = field(default_factory=dict)  # rows known to be off, and why


def causal(family, sizes, **more):
    return Model(f"{family}Config", f"{family}ForCausalLM", sizes, **more)


def models():
    qwen_vocabulary = dict(vocab_size=151936)
    return {
        "Llama-3.2-1B": causal("Llama", dict(
            hidden_size=2048, intermediate_size=8192, num_hidden_layers=2, num_attention_heads=32,
            num_key_value_heads=8, head_dim=64, vocab_size=128256, tie_word_embeddings=True)),
        "Qwen3-0.6B": causal("Qwen3", dict(
            hidden_size=1024, intermediate_size=3072, num_hidden_layers=4, num_attention_heads=16,
            num_key_value_heads=8, head_dim=128, tie_word_embeddings=True, **qwen_vocabulary)),
        "Qwen3-4B": causal("Qwen3", dict(
            hidden_size=2560, intermediate_size=9728, num_hidden_layers=2, num_attention_heads=32,
            num_key_value_heads=8, head_dim=128, tie_word_embeddings=True, **qwen_vocabulary)),
        "Qwen2.5-1.5B": causal("Qwen2", dict(
            hidden_size=1536, intermediate_size=8960, num_hidden_layers=2, num_attention_heads=12,
            num_key_value_heads=2, tie_word_embeddings=True, **qwen_vocabulary)),
        "Mistral-7B": causal("Mistral", dict(
            hidden_size=4096, intermediate_size=14336, num_hidden_layers=2, num_attention_heads=32,
            num_key_value_heads=8, vocab_size=32000, sliding_window=4096), sequence=256),
        "Phi-2": causal("Phi", dict(
            hidden_size=2560, intermediate_size=10240, num_hidden_layers=2, num_attention_heads=32,
            vocab_size=51200, partial_rotary_factor=0.4)),
        "Phi-3-mini": causal("Phi3", dict(
            hidden_size=3072, intermediate_size=8192, num_hidden_layers=2, num_attention_heads=32,
            num_key_value_heads=32, vocab_size=32064, sliding_window=2047, pad_token_id=0)),
        "Gemma-3-1B": Model("Gemma3TextConfig", "Gemma3ForCausalLM", dict(
            hidden_size=1152, intermediate_size=6912, num_hidden_layers=6, num_attention_heads=4,
            num_key_value_heads=1, head_dim=256, vocab_size=262144, sliding_window=512, tie_word_embeddings=True)),
        "Gemma-2-2B": causal("Gemma2", dict(
            hidden_size=2304, intermediate_size=9216, num_hidden_layers=2, num_attention_heads=8,
            num_key_value_heads=4, head_dim=256, vocab_size=256000, sliding_window=4096), attentions=("eager",)),
        "GPT-2": Model("GPT2Config", "GPT2LMHeadModel", {}, past=512),
        "Pythia-410M": causal("GPTNeoX", dict(
            hidden_size=1024, intermediate_size=4096, num_hidden_layers=4, num_attention_heads=16, vocab_size=50304)),
        "Pythia-6.9B": causal("GPTNeoX", dict(
            hidden_size=4096, intermediate_size=16384, num_hidden_layers=2, num_attention_heads=32, vocab_size=50432), sequence=256),
        "OPT-125M": causal("OPT", {}),
        "OPT-1.3B": causal("OPT", dict(
            hidden_size=2048, word_embed_proj_dim=2048, ffn_dim=8192, num_hidden_layers=2, num_attention_heads=32)),
        "BLOOM-560M": causal("Bloom", dict(hidden_size=1024, n_layer=2, n_head=16), attentions=("eager",)),
        "Qwen1.5-MoE-A2.7B": causal("Qwen2Moe", dict(
            hidden_size=2048, intermediate_size=5632, moe_intermediate_size=1408, shared_expert_intermediate_size=5632,
            num_hidden_layers=2, num_attention_heads=16, num_key_value_heads=16, num_experts=60, num_experts_per_tok=4,
            **qwen_vocabulary)),
        "Qwen3-30B-A3B": causal("Qwen3Moe", dict(
            hidden_size=2048, intermediate_size=6144, moe_intermediate_size=768, num_hidden_layers=2,
            num_attention_heads=32, num_key_value_heads=4, head_dim=128, num_experts=128, num_experts_per_tok=8,
            **qwen_vocabulary)),
        "Mixtral-8x7B": causal("Mixtral", dict(
            hidden_size=4096, intermediate_size=14336, num_hidden_layers=2, num_attention_heads=32,
            num_key_value_heads=8, num_local_experts=8, num_experts_per_tok=2, vocab_size=32000, sliding_window=None),
            sequence=128),
        "T5-small": Model("T5Config", "T5ForConditionalGeneration", {}, "pairs"),
        "FLAN-T5-base": Model("T5Config", "T5ForConditionalGeneration", dict(
            d_model=768, d_kv=64, d_ff=2048, num_layers=3, num_heads=12, feed_forward_proj="gated-gelu",
            tie_word_embeddings=False), "pairs"),
        "Whisper-tiny": Model("WhisperConfig", "WhisperForConditionalGeneration", dict(vocab_size=51865), "sound",
                              sequence=64, past=400),
        "Whisper-small": Model("WhisperConfig", "WhisperForConditionalGeneration", dict(
            d_model=768, encoder_layers=3, decoder_layers=3, encoder_attention_heads=12, decoder_attention_heads=12,
            encoder_ffn_dim=3072, decoder_ffn_dim=3072, vocab_size=51865), "sound", sequence=64, past=400),
        "BERT-base": Model("BertConfig", "BertModel", {}, past=0),
        "BERT-large": Model("BertConfig", "BertForMaskedLM", dict(
            hidden_size=1024, num_hidden_layers=2, num_attention_heads=16, intermediate_size=4096), past=0),
        "RoBERTa-base": Model("RobertaConfig", "RobertaModel", dict(
            vocab_size=50265, max_position_embeddings=514, type_vocab_size=1, pad_token_id=1), past=0),
        "DistilBERT-base": Model("DistilBertConfig", "DistilBertModel", {}, past=0),
        "ViT-base": Model("ViTConfig", "ViTModel", {}, "image", past=0),
        "ViT-large": Model("ViTConfig", "ViTForImageClassification", dict(
            hidden_size=1024, num_hidden_layers=2, num_attention_heads=16, intermediate_size=4096), "image", past=0, batch=4),
        "SigLIP-base-text": Model("SiglipTextConfig", "SiglipTextModel", {}, sequence=64, past=0, batch=8),
        "CLIP-ViT-base-text": Model("CLIPTextConfig", "CLIPTextModel", {}, sequence=77, past=0, batch=8),
        "SigLIP-base": Model("SiglipVisionConfig", "SiglipVisionModel", {}, "image", past=0),
        "SigLIP-so400m": Model("SiglipVisionConfig", "SiglipVisionModel", dict(
            hidden_size=1152, intermediate_size=4304, num_hidden_layers=2, num_attention_heads=16, image_size=384,
            patch_size=14), "image", past=0),
        "CLIP-ViT-base": Model("CLIPVisionConfig", "CLIPVisionModel", {}, "image", past=0, batch=4),
    }
