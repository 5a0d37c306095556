"""Other values for every setting of a configuration class: (what is changed, the changes) for each."""

ACTIVATIONS = ("relu", "gelu", "gelu_new", "silu", "gelu_pytorch_tanh")
WORDS = ("softmax", "sigmoid", "noaux_tc", "group_limited_greedy", "gated-gelu", "gated-silu", "relative_key")
KINDS = ("sliding_attention", "full_attention")
# Of the load, not of the model.
LEFT_OUT = {"transformers_version", "model_type", "_name_or_path", "architectures", "dtype", "output_attentions", "return_dict"}

YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}
# Combinations that no single setting makes.
TOGETHER = {
    "llama": [("older spelling", {"rope_scaling": {"type": "linear", "factor": 4.0}, "rope_theta": 500.0, "rope_parameters": None})],
    "smollm3": [("windows", {"use_sliding_window": True, "sliding_window": 16, "layer_types": ["sliding_attention"] * 2}),
                ("interval", {"num_hidden_layers": 6, "no_rope_layer_interval": 2, "no_rope_layers": None, "layer_types": None}),
                ("usual interval", {"num_hidden_layers": 6, "no_rope_layers": None, "layer_types": None}),
                ("no rope", {"num_hidden_layers": 6, "no_rope_layers": [0, 0, 0, 1, 0, 0], "layer_types": None})],
    "qwen2": [("windows", {"use_sliding_window": True, "sliding_window": 16, "max_window_layers": 1, "layer_types": None})],
    "qwen3": [("windows", {"use_sliding_window": True, "sliding_window": 16, "max_window_layers": 1, "layer_types": None})],
    "qwen2_moe": [("windows", {"use_sliding_window": True, "sliding_window": 16, "max_window_layers": 0, "layer_types": None})],
    "qwen3_moe": [("windows", {"use_sliding_window": True, "sliding_window": 16})],
    "gpt_oss": [("narrow limit", {"swiglu_limit": 0.5})],
    "gemma2": [("scale", {"query_pre_attn_scalar": 24}), ("no caps", {"attn_logit_softcapping": None, "final_logit_softcapping": None}),
               ("low caps", {"attn_logit_softcapping": 1.0, "final_logit_softcapping": 0.5})],
    "gemma3_text": [("scale", {"query_pre_attn_scalar": 24}), ("cap", {"final_logit_softcapping": 0.5})],
    "deepseek_v3": [("groups", {"n_routed_experts": 8, "n_group": 4, "topk_group": 2}), ("unnormed", {"norm_topk_prob": False, "routed_scaling_factor": 2.5}),
                    ("equal mscale", {"rope_parameters": {**YARN, "rope_theta": 10000.0, "mscale": 0.707, "mscale_all_dim": 0.707}}),
                    ("betas", {"rope_parameters": {**YARN, "rope_theta": 10000.0, "mscale": 1.0, "mscale_all_dim": 1.0, "beta_fast": 16.0}})],
    "deepseek_v2": [("groups", {"n_routed_experts": 8, "n_group": 4, "topk_group": 2, "topk_method": "group_limited_greedy"})],
    "falcon": [("one norm", {"num_ln_in_parallel_attn": 1, "new_decoder_architecture": True, "num_kv_heads": 2})],
    "gpt2": [("scale by layer", {"n_layer": 4, "scale_attn_by_inverse_layer_idx": True})],
}


def scalings(base, width):
    """Other rotary embeddings than `base`, which has one for each kind of layer or is one."""
    if "full_attention" in base:
        for kind in ("full_attention", "sliding_attention"):
            for name, changed in scalings(base[kind], width):
                yield f"{kind}.{name}", {**base, kind: changed}
        return
    plain = {"rope_type": "default", **{key: base[key] for key in ("rope_theta", "partial_rotary_factor") if key in base}}
    yarn = {**plain, **YARN}
    factors = {"long_factor": [1.0 + i / 4 for i in range(width // 2)], "short_factor": [1.0 + i / 16 for i in range(width // 2)]}
    longer = {**plain, "rope_type": "longrope", "original_max_position_embeddings": 64, **factors}
    yield "rope_theta", {**plain, "rope_theta": 500.0}
    yield "default", plain
    yield "linear", {**plain, "rope_type": "linear", "factor": 4.0}
    yield "dynamic", {**plain, "rope_type": "dynamic", "factor": 4.0}
    yield "yarn", yarn
    yield "yarn without context", {key: value for key, value in yarn.items() if not key.startswith("original")}
    for name, more in (("attention_factor", 0.7), ("beta_fast", 16.0), ("beta_slow", 4.0), ("truncate", False), ("mscale", 0.5), ("mscale_all_dim", 0.5)):
        yield f"yarn {name}", {**yarn, name: more}
    yield "yarn both mscale", {**yarn, "mscale": 0.707, "mscale_all_dim": 0.707}
    yield "yarn two mscale", {**yarn, "mscale": 1.0, "mscale_all_dim": 0.5}
    yield "llama3", {**plain, "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}
    yield "longrope", longer
    yield "longrope attention_factor", {**longer, "attention_factor": 1.5}
    yield "longrope factor", {**longer, "factor": 8.0}
    yield "partial_rotary_factor", {**plain, "partial_rotary_factor": 0.5 if plain.get("partial_rotary_factor", 1.0) != 0.5 else 0.25}
    yield "a field of nobody", {**plain, "of_nobody": 3}


def windows(layers):
    yield "alternate", [KINDS[i % 2] for i in range(layers)]
    yield "the others alternate", [KINDS[(i + 1) % 2] for i in range(layers)]
    yield "all full", ["full_attention"] * layers
    yield "all slide", ["sliding_attention"] * layers
    yield "irregular", [KINDS[i in (0, 1, layers - 1)] for i in range(layers)]


def candidates(key, value, layers):
    """Values of which the first that the class takes is tried."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [2 * value, value // 2, value + 1, 3] if value else [1, 2, 16]
    if isinstance(value, float):
        return [0.1 if value < 0.01 else value * 0.5] if value else [0.3]
    if isinstance(value, str):
        return [word for word in ACTIVATIONS + WORDS if word != value]
    if isinstance(value, list):
        return {"mlp_only_layers": [[0]], "no_rope_layers": [[0] + [1] * (layers - 1)]}.get(key, [value[::-1]])
    if isinstance(value, dict):
        return [{"0": "a", "1": "b", "2": "c"} if key == "id2label" else {"a": 0, "b": 1, "c": 2}]
    return [16, 5.0, True, "relu", [0], 2]


def variants(config):
    """(name, [the changes to try until one can be built]) for every setting of the configuration."""
    settings = config.to_dict()
    layers = next((settings[key] for key in ("num_hidden_layers", "n_layer", "num_layers", "n_layers", "encoder_layers") if key in settings), 2)
    for key, value in settings.items():
        if key in LEFT_OUT:
            continue
        if value is not None and not isinstance(value, dict):
            yield f"{key} null", [{key: None}]
        if key == "rope_parameters" and value:
            width = settings.get("qk_rope_head_dim") or settings.get("head_dim") or settings["hidden_size"] // settings["num_attention_heads"]
            for name, scaling in scalings(value, int(width * value.get("partial_rotary_factor", 1.0))):
                yield f"rope {name}", [{key: scaling}]
        elif key == "layer_types" and value:
            for name, kinds in windows(layers):
                if kinds != value:
                    yield f"layer_types {name}", [{key: kinds}]
        elif isinstance(value, str) and value in ACTIVATIONS:
            yield f"{key} relu", [{key: "relu"}]
            yield f"{key} another gelu", [{key: "gelu_new" if value == "gelu" else "gelu"}]
        else:
            yield key, [{key: other} for other in candidates(key, value, layers)]
    yield "a setting of nobody", [{"of_nobody": 3}]
    for name, changes in TOGETHER.get(config.model_type, []):
        yield name, [changes]
