"""Small GGUF files, zeros throughout, of architectures whose layers differ: llama.cpp opens them, Loadline has no map."""

import gguf
import numpy

E, F, V = 64, 96, 64  # widths of a token and of the feed-forward part, and tokens


class File:
    def __init__(self, path, arch, layers, heads, groups, wide=F):
        self.keys = keys = gguf.GGUFWriter(path, arch)
        self.arch = arch
        keys.add_block_count(layers)
        keys.add_context_length(32768)
        keys.add_embedding_length(E)
        keys.add_feed_forward_length(wide)
        keys.add_head_count(heads)
        keys.add_head_count_kv(groups)
        keys.add_layer_norm_rms_eps(1e-5)
        keys.add_vocab_size(V)
        keys.add_rope_freq_base(10000.0)
        keys.add_tokenizer_model("no_vocab")
        self.add("token_embd.weight", E, V)
        if arch != "lfm2":
            self.add("output_norm.weight", E)

    def number(self, name, value):
        self.keys.add_uint32(f"{self.arch}.{name}", value)

    def heads(self, width):
        self.keys.add_key_length(width)
        self.keys.add_value_length(width)

    def states(self, convolution, inner, state, rank, groups=0):
        self.keys.add_ssm_conv_kernel(convolution)
        self.keys.add_ssm_inner_size(inner)
        self.keys.add_ssm_state_size(state)
        self.keys.add_ssm_time_step_rank(rank)
        if groups:
            self.keys.add_ssm_group_count(groups)

    def add(self, name, *shape):
        """The shape as ggml writes it: the columns first."""
        self.keys.add_tensor(name, numpy.zeros(shape[::-1], numpy.float32))

    def add_layer(self, i, **shapes):
        for name, shape in shapes.items():
            suffix = {"ssm_a": "", "ssm_d": ""}.get(name, ".weight")
            self.add(f"blk.{i}.{name.removesuffix('_bias')}" + (".bias" if name.endswith("_bias") else suffix), *shape)

    def attention(self, i, heads, groups, width, normed=True):
        self.add_layer(i, attn_q=(E, heads * width), attn_k=(E, groups * width), attn_v=(E, groups * width), attn_output=(heads * width, E))
        if normed:
            self.add_layer(i, attn_q_norm=(width,), attn_k_norm=(width,))

    def feed_forward(self, i, wide=F):
        self.add_layer(i, ffn_gate=(E, wide), ffn_up=(E, wide), ffn_down=(wide, E))

    def close(self):
        self.keys.write_header_to_file()
        self.keys.write_kv_data_to_file()
        self.keys.write_tensors_to_file()
        self.keys.close()


def lfm2(path):
    """Layers without attention have short convolutions."""
    groups = [0, 0, 2, 0, 0, 4, 0, 2]
    file = File(path, "lfm2", len(groups), 8, groups)
    file.number("shortconv.l_cache", 3)
    file.add("token_embd_norm.weight", E)
    for i, count in enumerate(groups):
        file.add_layer(i, attn_norm=(E,), ffn_norm=(E,))
        file.feed_forward(i)
        if count:
            file.attention(i, 8, count, 8)
        else:
            file.add(f"blk.{i}.shortconv.conv.weight", 3, E)
            file.add(f"blk.{i}.shortconv.in_proj.weight", E, 3 * E)
            file.add(f"blk.{i}.shortconv.out_proj.weight", E, E)
    file.close()


def openelm(path):
    """More heads in later layers."""
    heads, groups, wide, width = [4, 8, 8, 12], [1, 2, 2, 3], [96, 128, 160, 96], 8
    file = File(path, "openelm", 4, heads, groups, wide)
    file.heads(width)
    file.keys.add_rope_dimension_count(width)
    for i in range(4):
        file.add_layer(i, attn_norm=(E,), ffn_norm=(E,), attn_qkv=(E, width * (heads[i] + 2 * groups[i])), attn_q_norm=(width,),
                       attn_k_norm=(width,), attn_output=(width * heads[i], E))
        file.feed_forward(i, wide[i])
    file.close()


def jamba(path):
    """Mamba in layers without attention."""
    groups, (inner, state, rank, kernel) = [0, 0, 0, 2, 0, 0, 0, 2], (128, 16, 4, 4)
    file = File(path, "jamba", len(groups), 8, groups)
    file.states(kernel, inner, state, rank)
    for i, count in enumerate(groups):
        file.add_layer(i, attn_norm=(E,), ffn_norm=(E,))
        file.feed_forward(i)
        if count:
            file.attention(i, 8, count, 8, normed=False)
        else:
            file.add_layer(i, ssm_in=(E, 2 * inner), ssm_conv1d=(kernel, inner), ssm_conv1d_bias=(inner,), ssm_x=(inner, rank + 2 * state),
                           ssm_dt=(rank, inner), ssm_dt_bias=(inner,), ssm_a=(state, inner), ssm_d=(inner,), ssm_out=(inner, E),
                           ssm_dt_norm=(rank,), ssm_b_norm=(state,), ssm_c_norm=(state,))
    file.close()


def _mamba2_layer(file, i, kernel, inner, state, heads, groups):
    mixed = inner + 2 * groups * state
    file.add_layer(i, ssm_in=(E, inner + mixed + heads), ssm_conv1d=(kernel, mixed), ssm_conv1d_bias=(mixed,), ssm_dt_bias=(heads,),
                   ssm_a=(1, heads), ssm_d=(1, heads), ssm_norm=(inner // groups, groups), ssm_out=(inner, E))


def falcon_h1(path):
    """Attention and Mamba-2 in every layer."""
    sizes = kernel, inner, state, heads, groups = 4, 128, 16, 8, 2
    file = File(path, "falcon-h1", 4, 8, 2)
    file.states(*sizes)
    file.heads(8)
    for i in range(4):
        file.add_layer(i, attn_norm=(E,))
        file.add(f"blk.{i}.ffn_norm", E)
        file.feed_forward(i)
        file.attention(i, 8, 2, 8, normed=False)
        _mamba2_layer(file, i, *sizes)
    file.close()


def mamba2(path):
    """No attention at all."""
    sizes = 4, 128, 16, 8, 2
    file = File(path, "mamba2", 4, 0, 0, 0)
    file.states(*sizes)
    for i in range(4):
        file.add_layer(i, attn_norm=(E,))
        _mamba2_layer(file, i, *sizes)
    file.close()


def qwen35(path):
    """Linear attention in all layers but every fourth."""
    (kernel, inner, state, heads, groups), width = (4, 128, 16, 8, 4), 16
    file = File(path, "qwen35", 8, 4, 2)
    file.states(kernel, inner, state, heads, groups)
    file.heads(width)
    file.number("full_attention_interval", 4)
    file.keys.add_array("qwen35.rope.dimension_sections", [2, 1, 1, 0])
    file.keys.add_rope_dimension_count(8)
    for i in range(8):
        file.add_layer(i, attn_norm=(E,), post_attention_norm=(E,))
        file.feed_forward(i)
        if i % 4 == 3:
            file.add_layer(i, attn_q=(E, 8 * width), attn_k=(E, 2 * width), attn_v=(E, 2 * width), attn_output=(4 * width, E),
                           attn_q_norm=(width,), attn_k_norm=(width,))
        else:
            mixed = inner + 2 * groups * state
            file.add_layer(i, attn_qkv=(E, mixed), attn_gate=(E, inner), ssm_conv1d=(kernel, mixed), ssm_dt_bias=(heads,), ssm_a=(heads,),
                           ssm_beta=(E, heads), ssm_alpha=(E, heads), ssm_norm=(inner // heads,), ssm_out=(inner, E))
    file.close()


def gemma4(path):
    """Windows in two layers of three, whose heads are narrower; the last layers use the caches of earlier ones."""
    windowed, wide, narrow = [True, True, False] * 3, 16, 8
    groups = [2 if slides else 1 for slides in windowed]
    file = File(path, "gemma4", len(windowed), 4, groups)
    file.heads(wide)
    file.number("attention.key_length_swa", narrow)
    file.number("attention.value_length_swa", narrow)
    file.number("attention.shared_kv_layers", 3)
    file.number("embedding_length_per_layer_input", 0)
    file.number("rope.dimension_count_swa", narrow)
    file.keys.add_sliding_window(512)
    file.keys.add_array("gemma4.attention.sliding_window_pattern", windowed)
    file.keys.add_rope_dimension_count(wide)
    file.keys.add_float32("gemma4.rope.freq_base_swa", 10000.0)
    file.add("rope_freqs.weight", wide // 2)
    for i, slides in enumerate(windowed):
        file.add_layer(i, attn_norm=(E,), post_attention_norm=(E,), ffn_norm=(E,), post_ffw_norm=(E,), layer_output_scale=(1,))
        file.attention(i, 4, groups[i], narrow if slides else wide)
        file.feed_forward(i)
    file.close()


def exaone4(path):
    """A window that llama.cpp takes in models of 64 layers alone."""
    file = File(path, "exaone4", 4, 4, 2)
    file.heads(16)
    file.keys.add_sliding_window(256)
    file.keys.add_array("exaone4.attention.sliding_window_pattern", [True, True, True, False])
    for i in range(4):
        file.add_layer(i, post_attention_norm=(E,), post_ffw_norm=(E,))
        file.attention(i, 4, 2, 16)
        file.feed_forward(i)
    file.close()


def glm4moe(path):
    """Its last layer predicts a further token and keeps no cache."""
    file = File(path, "glm4moe", 3, 4, 2)
    file.heads(16)
    file.keys.add_rope_dimension_count(8)
    for name, value in {"expert_count": 4, "expert_used_count": 2, "expert_shared_count": 1, "expert_feed_forward_length": 32,
                        "leading_dense_block_count": 3, "expert_gating_func": 2, "nextn_predict_layers": 1}.items():
        file.number(name, value)
    for i in range(3):
        file.add_layer(i, attn_norm=(E,), post_attention_norm=(E,))
        file.attention(i, 4, 2, 16)
        file.feed_forward(i)
    file.add_layer(2, **{"nextn.eh_proj": (2 * E, E), "nextn.enorm": (E,), "nextn.hnorm": (E,), "nextn.shared_head_norm": (E,)})
    file.close()


ALL = (lfm2, openelm, jamba, falcon_h1, mamba2, qwen35, gemma4, exaone4, glm4moe)
