// Tensor lists of the Llama and GPT-2 families.
#include "core/forward/families.h"

#include "core/base/checked.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/graph/validate.h"

#include <array>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace loadline {
namespace {

using Json = nlohmann::json;
using Shape = std::vector<std::uint64_t>;

// Reads checked values: a config is a file like any other.
class Config {
 public:
  Config(std::string_view text, const std::string& path) : path_(path) {
    // a bound on nesting keeps the parser's and the value's recursion short
    int depth = 0;
    const auto bounded = [&](int, Json::parse_event_t event, Json&) {
      using E = Json::parse_event_t;
      if (event == E::object_start || event == E::array_start) ++depth;
      if (event == E::object_end || event == E::array_end) --depth;
      if (depth > 64) throw fail("nested more than 64 levels deep");
      return true;
    };
    try {
      json_ = Json::parse(text, bounded);
    } catch (const Json::exception& error) {
      throw fail(fmt::format("not valid JSON: {}", safe_display(error.what(), 200)));
    }
    if (!json_.is_object()) throw fail("not a JSON object");
  }

  Error fail(std::string_view detail, ErrorCode code = ErrorCode::malformed) const {
    return Error(code, {.file = path_}, detail);
  }

  std::string text(const char* key, std::string_view otherwise) const {
    const auto found = json_.find(key);
    if (found == json_.end() || found->is_null()) return std::string(otherwise);
    if (!found->is_string()) throw fail(fmt::format("'{}' is not a string", key));
    return found->get<std::string>();
  }

  bool flag(const char* key, bool otherwise) const {
    const auto found = json_.find(key);
    if (found == json_.end() || found->is_null()) return otherwise;
    if (!found->is_boolean()) throw fail(fmt::format("'{}' is not true or false", key));
    return found->get<bool>();
  }

  // quantization_config's weight_block_size where quant_method is fp8, else nothing.
  std::optional<std::array<std::uint64_t, 2>> fp8_block() const {
    const auto found = json_.find("quantization_config");
    if (found == json_.end() || found->is_null()) return std::nullopt;
    const auto fail_method = [&] {
      return fail("quantization_config is not fp8 with a weight_block_size of two sizes",
                  ErrorCode::unsupported);
    };
    if (!found->is_object() || found->value("quant_method", Json()) != "fp8") throw fail_method();
    const auto block = found->find("weight_block_size");
    if (block == found->end() || !block->is_array() || block->size() != 2) throw fail_method();
    std::array<std::uint64_t, 2> sizes = {};
    for (std::size_t i = 0; i < 2; ++i) {
      if (!(*block)[i].is_number_unsigned() || (*block)[i] == 0) throw fail_method();
      sizes[i] = (*block)[i].get<std::uint64_t>();
    }
    return sizes;
  }

  // A size that no real model exceeds, so that products of two stay inside 64 bits.
  std::uint64_t size(const char* key, std::optional<std::uint64_t> otherwise = {}) const {
    constexpr std::uint64_t kMost = std::uint64_t{1} << 31;
    const auto found = json_.find(key);
    if (found == json_.end() || found->is_null()) {
      if (otherwise) return *otherwise;
      throw fail(fmt::format("'{}' is missing", key));
    }
    if (!found->is_number_unsigned() || found->get<std::uint64_t>() == 0 ||
        found->get<std::uint64_t>() > kMost)
      throw fail(fmt::format("'{}' is not a whole number from 1 to {}", key, kMost));
    return found->get<std::uint64_t>();
  }

  // How many there are of something that may be left out: 0 if absent.
  std::uint64_t count(const char* key) const {
    const auto found = json_.find(key);
    return found == json_.end() || found->is_null() || *found == 0 ? 0 : size(key);
  }

 private:
  std::string path_;
  Json json_;
};

class Builder {
 public:
  Builder(const Config& config, DType dtype) : config_(config), dtype_(dtype) {}

  void add(std::string name, Shape shape) { add(std::move(name), std::move(shape), dtype_); }
  void add(std::string name, Shape shape, DType dtype) {
    constexpr std::size_t kMostTensors = 2'000'000;
    const auto count = element_count(shape);
    const auto bytes = count ? byte_size(dtype, *count) : std::nullopt;
    const auto total = bytes ? checked_add(total_, *bytes) : std::nullopt;
    if (!total || *total >> 62 != 0 || graph_.tensors.size() == kMostTensors)
      throw config_.fail(fmt::format("tensor '{}' makes the model too large", name), ErrorCode::limit);
    total_ = *total;
    const StorageId storage{static_cast<std::uint32_t>(graph_.storages.size())};
    graph_.storages.push_back(shapes_only_storage(*bytes));
    graph_.tensors.push_back({std::move(name), dtype, std::move(shape), {}, storage, 0});
  }
  void weight_and_bias(const std::string& name, std::uint64_t out, std::uint64_t in, bool bias) {
    add(name + ".weight", {out, in});
    if (bias) add(name + ".bias", {out});
  }
  void layer_norm(const std::string& name, std::uint64_t width) {
    add(name + ".weight", {width});
    add(name + ".bias", {width});
  }
  DType dtype() const { return dtype_; }
  MetaGraph take() { return std::move(graph_); }

 private:
  const Config& config_;
  DType dtype_;
  std::uint64_t total_ = 0;
  MetaGraph graph_;
};

void llama(const Config& config, Builder& b) {
  const std::uint64_t d = config.size("hidden_size"), heads = config.size("num_attention_heads"),
                      kv = config.size("num_key_value_heads", heads), ffn = config.size("intermediate_size"),
                      vocabulary = config.size("vocab_size");
  if (d % heads != 0 && config.size("head_dim", 0) == 0)
    throw config.fail(fmt::format("hidden_size {} is no multiple of num_attention_heads {}", d, heads));
  if (heads % kv != 0)
    throw config.fail(
        fmt::format("num_attention_heads {} is no multiple of num_key_value_heads {}", heads, kv));
  const std::uint64_t head = config.size("head_dim", d / heads);
  const bool attention_bias = config.flag("attention_bias", false), mlp_bias = config.flag("mlp_bias", false);
  b.add("model.embed_tokens.weight", {vocabulary, d});
  for (std::uint64_t i = 0; i < config.size("num_hidden_layers"); ++i) {
    const std::string layer = fmt::format("model.layers.{}.", i);
    b.weight_and_bias(layer + "self_attn.q_proj", heads * head, d, attention_bias);
    b.weight_and_bias(layer + "self_attn.k_proj", kv * head, d, attention_bias);
    b.weight_and_bias(layer + "self_attn.v_proj", kv * head, d, attention_bias);
    b.weight_and_bias(layer + "self_attn.o_proj", d, heads * head, attention_bias);
    b.weight_and_bias(layer + "mlp.gate_proj", ffn, d, mlp_bias);
    b.weight_and_bias(layer + "mlp.up_proj", ffn, d, mlp_bias);
    b.weight_and_bias(layer + "mlp.down_proj", d, ffn, mlp_bias);
    b.add(layer + "input_layernorm.weight", {d});
    b.add(layer + "post_attention_layernorm.weight", {d});
  }
  b.add("model.norm.weight", {d});
  if (!config.flag("tie_word_embeddings", false)) b.add("lm_head.weight", {vocabulary, d});
}

// DeepSeek-V2 and V3: latent attention, and from layer first_k_dense_replace on, experts. Block-quantised
// weights have a scale per block beside them. After the numbered layers come those that predict further
// tokens, with an embedding and a head of their own.
class DeepSeek {
 public:
  DeepSeek(const Config& config, Builder& builder)
      : config_(config), b_(builder), block_(config.fp8_block()), d_(config.size("hidden_size")) {}

  void build() {
    const std::uint64_t vocabulary = config_.size("vocab_size"), layers = config_.size("num_hidden_layers");
    b_.add("model.embed_tokens.weight", {vocabulary, d_});
    for (std::uint64_t i = 0; i < layers; ++i) layer(fmt::format("model.layers.{}.", i), i);
    for (std::uint64_t i = layers; i < layers + config_.count("num_nextn_predict_layers"); ++i) {
      const std::string name = fmt::format("model.layers.{}.", i);
      b_.add(name + "embed_tokens.weight", {vocabulary, d_});
      b_.add(name + "enorm.weight", {d_});
      b_.add(name + "hnorm.weight", {d_});
      b_.add(name + "eh_proj.weight", {d_, 2 * d_});
      layer(name, i);
      b_.add(name + "shared_head.norm.weight", {d_});
      b_.add(name + "shared_head.head.weight", {vocabulary, d_});
    }
    b_.add("model.norm.weight", {d_});
    if (!config_.flag("tie_word_embeddings", false)) b_.add("lm_head.weight", {vocabulary, d_});
  }

 private:
  void linear(const std::string& name, std::uint64_t out, std::uint64_t in) {
    b_.add(name + ".weight", {out, in}, block_ ? DType::f8_e4m3 : b_.dtype());
    if (!block_) return;
    const auto blocks = [](std::uint64_t size, std::uint64_t block) {
      return size / block + (size % block != 0);
    };
    b_.add(name + ".weight_scale_inv", {blocks(out, (*block_)[0]), blocks(in, (*block_)[1])}, DType::f32);
  }

  void mlp(const std::string& name, std::uint64_t width) {
    linear(name + "gate_proj", width, d_);
    linear(name + "up_proj", width, d_);
    linear(name + "down_proj", d_, width);
  }

  void attention(const std::string& name) {
    const std::uint64_t heads = config_.size("num_attention_heads"), latent = config_.size("kv_lora_rank"),
                        nope = config_.size("qk_nope_head_dim"), rope = config_.size("qk_rope_head_dim"),
                        value = config_.size("v_head_dim");
    if (const std::uint64_t rank = config_.count("q_lora_rank"); rank > 0) {
      linear(name + "q_a_proj", rank, d_);
      b_.add(name + "q_a_layernorm.weight", {rank});
      linear(name + "q_b_proj", heads * (nope + rope), rank);
    } else {
      linear(name + "q_proj", heads * (nope + rope), d_);
    }
    linear(name + "kv_a_proj_with_mqa", latent + rope, d_);
    b_.add(name + "kv_a_layernorm.weight", {latent});
    linear(name + "kv_b_proj", heads * (nope + value), latent);
    linear(name + "o_proj", d_, heads * value);
  }

  void layer(const std::string& name, std::uint64_t number) {
    b_.add(name + "input_layernorm.weight", {d_});
    attention(name + "self_attn.");
    b_.add(name + "post_attention_layernorm.weight", {d_});
    if (number < config_.count("first_k_dense_replace"))
      return mlp(name + "mlp.", config_.size("intermediate_size"));
    const std::uint64_t experts = config_.size("n_routed_experts"),
                        width = config_.size("moe_intermediate_size");
    b_.add(name + "mlp.gate.weight", {experts, d_});
    if (config_.text("topk_method", "") == "noaux_tc")
      b_.add(name + "mlp.gate.e_score_correction_bias", {experts}, DType::f32);
    for (std::uint64_t e = 0; e < experts; ++e) mlp(fmt::format("{}mlp.experts.{}.", name, e), width);
    if (const std::uint64_t shared = config_.count("n_shared_experts"); shared > 0)
      mlp(name + "mlp.shared_experts.", shared * width);
  }

  const Config& config_;
  Builder& b_;
  std::optional<std::array<std::uint64_t, 2>> block_;
  std::uint64_t d_;
};

void deepseek(const Config& config, Builder& builder) { DeepSeek(config, builder).build(); }

struct Gpt2Sizes {
  std::uint64_t d, layers, ffn, vocabulary, positions;
};

Gpt2Sizes gpt2_sizes(const Config& config) {
  const std::uint64_t d = config.size("n_embd");
  return {.d = d,
          .layers = config.size("n_layer"),
          .ffn = config.size("n_inner", 4 * d),
          .vocabulary = config.size("vocab_size"),
          .positions = config.size("n_positions", 1024)};
}

// Conv1D stores [in, out].
void gpt2(const Config& config, Builder& b) {
  const Gpt2Sizes s = gpt2_sizes(config);
  const auto conv1d = [&](const std::string& name, std::uint64_t in, std::uint64_t out) {
    b.add(name + ".weight", {in, out});
    b.add(name + ".bias", {out});
  };
  b.add("wte.weight", {s.vocabulary, s.d});
  b.add("wpe.weight", {s.positions, s.d});
  for (std::uint64_t i = 0; i < s.layers; ++i) {
    const std::string layer = fmt::format("h.{}.", i);
    b.layer_norm(layer + "ln_1", s.d);
    conv1d(layer + "attn.c_attn", s.d, 3 * s.d);
    conv1d(layer + "attn.c_proj", s.d, s.d);
    b.layer_norm(layer + "ln_2", s.d);
    conv1d(layer + "mlp.c_fc", s.d, s.ffn);
    conv1d(layer + "mlp.c_proj", s.ffn, s.d);
  }
  b.layer_norm("ln_f", s.d);
  if (!config.flag("tie_word_embeddings", true)) b.add("lm_head.weight", {s.vocabulary, s.d});
}

// The GPT of S. Raschka's "Build a Large Language Model", in which his memory notebook measures
// load peaks: separate projections, an untied head, and each block's causal mask saved as F32.
void gpt2_separate_qkv(const Config& config, Builder& b) {
  const Gpt2Sizes s = gpt2_sizes(config);
  const bool bias = config.flag("qkv_bias", true);
  const auto scale_shift = [&](const std::string& name) {
    b.add(name + ".scale", {s.d});
    b.add(name + ".shift", {s.d});
  };
  b.add("tok_emb.weight", {s.vocabulary, s.d});
  b.add("pos_emb.weight", {s.positions, s.d});
  for (std::uint64_t i = 0; i < s.layers; ++i) {
    const std::string block = fmt::format("trf_blocks.{}.", i);
    b.add(block + "att.mask", {s.positions, s.positions}, DType::f32);
    for (const char* part : {"W_query", "W_key", "W_value"})
      b.weight_and_bias(block + "att." + part, s.d, s.d, bias);
    b.weight_and_bias(block + "att.out_proj", s.d, s.d, true);
    b.weight_and_bias(block + "ff.layers.0", s.ffn, s.d, true);
    b.weight_and_bias(block + "ff.layers.2", s.d, s.ffn, true);
    scale_shift(block + "norm1");
    scale_shift(block + "norm2");
  }
  scale_shift("final_norm");
  b.add("out_head.weight", {s.vocabulary, s.d});
}

struct Family {
  std::string_view model_type;
  void (*build)(const Config& config, Builder& builder);
};
constexpr std::array<Family, 6> kFamilies = {{{"llama", llama},
                                              {"mistral", llama},
                                              {"gpt2", gpt2},
                                              {"gpt2_separate_qkv", gpt2_separate_qkv},
                                              {"deepseek_v2", deepseek},
                                              {"deepseek_v3", deepseek}}};

DType config_dtype(const Config& config) {
  const std::string name = config.text("dtype", config.text("torch_dtype", "float32"));
  const auto dtype = dtype_from_torch(name);
  if (!dtype) throw config.fail(fmt::format("torch_dtype '{}' is not known", safe_display(name, 40)));
  return *dtype;
}

}  // namespace

MetaGraph config_graph(std::string_view config_json, const std::string& path) {
  const Config config(config_json, path);
  const std::string model_type = config.text("model_type", "");
  for (const Family& family : kFamilies) {
    if (family.model_type != model_type) continue;
    Builder builder(config, config_dtype(config));
    family.build(config, builder);
    MetaGraph graph = builder.take();
    graph.format = "config";
    graph.metadata.push_back({std::string(kConfigKey), std::string(config_json)});
    return graph;
  }
  std::string known;
  for (const Family& family : kFamilies)
    known += fmt::format("{}{}", known.empty() ? "" : ", ", family.model_type);
  throw config.fail(
      fmt::format("model_type '{}' has no known shapes; families: {}", safe_display(model_type, 60), known),
      ErrorCode::unsupported);
}

}  // namespace loadline
