// Reads the usual keys of config.json and the usual names of weights.
#include "core/assets/expression.h"
#include "core/base/checked_arithmetic.h"
#include "core/forward/family/model_config.h"
#include "core/forward/model/forward_model.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace loadline::forward {
namespace {

// The first of these keys that holds a whole number above 0.
std::optional<std::uint64_t> first_of(const ModelConfig& config, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    const assets::Datum value = config.get(key);
    if (value.number() != nullptr && *value.number() > 0) return static_cast<std::uint64_t>(*value.number());
  }
  return std::nullopt;
}

// Whether a part of the name says that not every row passes through this weight.
bool sees_some_rows(std::string_view name) {
  constexpr std::array<std::string_view, 9> kParts = {"embed",  "embd",  "wte",     "wpe",  "lm_head",
                                                      "pooler", "score", "classif", "logit"};
  const auto within = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  // "experts.3.up_proj" is one of many experts; "shared_experts.up_proj" sees every row
  for (std::size_t at = name.find("expert"); at != std::string_view::npos; at = name.find("expert", at + 1)) {
    const std::size_t dot = name.find('.', at);
    const char next = dot == std::string_view::npos || dot + 1 == name.size() ? ' ' : name[dot + 1];
    if (next >= '0' && next <= '9') return true;
  }
  return std::ranges::any_of(kParts, within);
}

// Bytes of one element of a layer's output: from the configuration, else the weight's. Quantized weights give
// 16-bit outputs.
std::uint64_t output_bytes(const std::optional<graph::DType>& configured, graph::DType weight) {
  const graph::DTypeInfo& info = graph::dtype_info(configured.value_or(weight));
  return info.kind == graph::DTypeKind::floating && info.block_elements == 1 ? std::max(info.block_bytes, 2u)
                                                                             : 2;
}

// What the usual keys tell of each layer. Numbers beyond kMost are as if they were missing.
class Layers {
 public:
  explicit Layers(const ModelConfig& config)
      : config_(config), kinds_(config.get("layer_types")), windowed_(config.get("sliding_window_pattern")) {
    count_ = limited({"num_hidden_layers", "n_layer", "num_layers", "n_layers", "L"}).value_or(0);
    heads_ = first_value({"num_attention_heads", "n_head", "num_heads", "n_heads", "H"});
    groups_ = first_value({"num_key_value_heads", "num_kv_heads", "n_head_kv", "K", "n_kv_heads"});
    if (groups_.null()) groups_ = heads_;
    key_ = limited({"head_dim", "d_kv", "kv_channels"}).value_or(usual_width());
    value_ = whole(config.get("v_head_dim")).value_or(key_);
    interval_ = limited({"full_attention_interval"}).value_or(0);
    window_ = limited({"window_positions", "sliding_window"}).value_or(0);
    state_ = limited({"recurrent_state"}).value_or(0);
    const std::uint64_t shared = limited({"num_kv_shared_layers"}).value_or(0);
    with_own_cache_ = count_ - std::min(shared, count_);
    pads_values_ = config.get("pads_values").truth();
    for (std::uint64_t i = 0; pads_values_ && i < std::min(count_, kMostLayers); ++i)
      widest_values_ = std::max(widest_values_, values(i));
  }

  // Whether the keys say enough.
  bool known() const {
    const bool attends = !heads_.null() && std::max(key_, value_) > 0;
    return count_ > 0 && count_ <= kMostLayers && (attends || state_ > 0);
  }
  std::uint64_t count() const { return count_; }
  std::uint64_t window() const { return window_; }

  // Numbers that one token of layer i adds to the cache.
  std::uint64_t cached(std::uint64_t i) const {
    if (!attends(i) || i >= with_own_cache_) return 0;
    const std::uint64_t key = slides(i) ? limited({"swa_head_dim"}).value_or(key_) : key_;
    return of_layer(groups_, i) * key + (pads_values_ ? widest_values_ : values(i));
  }

  // Whether the keys tell that layer i has a window.
  bool slides(std::uint64_t i) const {
    if (window_ == 0) return false;
    if (const std::string* const kind = kind_of(i)) return *kind == "sliding_attention";
    if (windowed_.list() != nullptr) return of_layer(windowed_, i) != 0;
    const std::uint64_t every = whole(windowed_).value_or(0);
    return every > 0 && (i + 1) % every != 0;
  }

  // Numbers of the recurrent state of layer i. Where nothing tells the layers apart, each has attention and a
  // state.
  std::uint64_t state(std::uint64_t i) const {
    const bool mixed = interval_ > 0 || groups_.list() != nullptr || kinds_.list() != nullptr;
    return mixed && attends(i) ? 0 : state_;
  }

 private:
  static constexpr std::uint64_t kMost = 1 << 24, kMostLayers = 1 << 16;

  static std::optional<std::uint64_t> whole(const assets::Datum& value) {
    if (value.number() == nullptr || *value.number() < 0) return std::nullopt;
    const auto number = static_cast<std::uint64_t>(*value.number());
    return number <= kMost ? std::optional(number) : std::nullopt;
  }
  std::optional<std::uint64_t> limited(std::initializer_list<const char*> keys) const {
    const auto found = first_of(config_, keys);
    return found && *found <= kMost ? found : std::nullopt;
  }
  // The first of these keys with a number, or with a list that has one for each layer.
  assets::Datum first_value(std::initializer_list<const char*> keys) const {
    for (const char* key : keys) {
      assets::Datum value = config_.get(key);
      if (value.list() != nullptr && value.list()->size() >= count_ && count_ > 0) return value;
      if (whole(value).value_or(0) > 0) return value;
    }
    return assets::Datum();
  }
  static std::uint64_t of_layer(const assets::Datum& value, std::uint64_t i) {
    if (value.list() == nullptr) return whole(value).value_or(0);
    return i < value.list()->size() ? whole((*value.list())[i]).value_or(0) : 0;
  }
  // The width of a head where no key tells it; 0 if the heads do not divide the width.
  std::uint64_t usual_width() const {
    const std::uint64_t width = limited({"hidden_size", "n_embd", "d_model", "dim", "d"}).value_or(0);
    const std::uint64_t heads = of_layer(heads_, 0);
    return heads == 0 || width % heads != 0 ? 0 : width / heads;
  }
  const std::string* kind_of(std::uint64_t i) const {
    return kinds_.list() != nullptr && i < kinds_.list()->size() ? (*kinds_.list())[i].text() : nullptr;
  }
  std::uint64_t values(std::uint64_t i) const {
    const std::uint64_t width = slides(i) ? limited({"swa_v_head_dim"}).value_or(value_) : value_;
    return of_layer(groups_, i) * width;
  }
  bool attends(std::uint64_t i) const {
    if (const std::string* const kind = kind_of(i))
      return kind->ends_with("attention") && !kind->starts_with("linear");
    if (interval_ > 0 && (i + 1) % interval_ != 0) return false;
    return of_layer(groups_, i) > 0;
  }

  const ModelConfig& config_;
  assets::Datum kinds_, windowed_, heads_, groups_;
  std::uint64_t count_ = 0, key_ = 0, value_ = 0, interval_ = 0, window_ = 0, state_ = 0, with_own_cache_ = 0;
  bool pads_values_ =
      false;  // llama.cpp without flash attention: the values of all layers as wide as the widest
  std::uint64_t widest_values_ = 0;
};

}  // namespace

std::optional<std::uint64_t> CacheEstimate::bytes(std::uint64_t tokens) const {
  const auto grown = checked_mul(per_token, tokens);
  const auto held = checked_mul(windowed_per_token, window == 0 ? tokens : std::min(tokens, window));
  const auto sum = grown && held ? checked_add(*grown, *held) : std::nullopt;
  return sum ? checked_add(*sum, state) : std::nullopt;
}

std::optional<CacheEstimate> estimated_cache(const ModelConfig& config, std::optional<graph::DType> element) {
  const Layers layers(config);
  if (!element)
    element = graph::dtype_from(&graph::DTypeInfo::torch,
                                config.text("dtype", config.text("torch_dtype", "float32")));
  if (!layers.known() || !element || graph::dtype_info(*element).block_elements != 1) return std::nullopt;
  const std::uint64_t bytes = graph::dtype_info(*element).block_bytes;
  CacheEstimate estimate{.window = layers.window()};
  for (std::uint64_t i = 0; i < layers.count(); ++i) {
    std::uint64_t& each = layers.slides(i) ? estimate.windowed_per_token : estimate.per_token;
    const auto sum = checked_add(each, layers.cached(i) * bytes);
    if (!sum) return std::nullopt;
    each = *sum;
    estimate.state += layers.state(i) * sizeof(float);
  }
  if (!checked_add(estimate.per_token, estimate.windowed_per_token)) return std::nullopt;
  return estimate;
}

std::optional<std::uint64_t> activation_bound_per_token(const graph::MetaGraph& graph,
                                                        const ModelConfig& config) {
  constexpr std::uint64_t kMostWidth = std::uint64_t{1} << 32;  // no layer is wider
  const auto vocabulary = first_of(config, {"vocab_size", "n_vocab", "padded_vocab_size"});
  const std::string named = config.text("dtype", config.text("torch_dtype", ""));
  const std::optional<graph::DType> configured = graph::dtype_from(&graph::DTypeInfo::torch, named);
  std::optional<std::uint64_t> widest;
  for (const graph::Tensor& tensor : graph.tensors) {
    const std::string_view name = tensor.name.view();
    const graph::DTypeKind kind = graph::dtype_info(tensor.dtype).kind;
    // the shapes of other packed weights do not give the width
    if (kind != graph::DTypeKind::floating && kind != graph::DTypeKind::block) continue;
    if (tensor.shape.size() != 2 || !name.ends_with(".weight") || sees_some_rows(name)) continue;
    const std::uint64_t output = tensor.shape[0];  // or the width of the input, which is alive as well
    if (output == 0 || output > kMostWidth || tensor.shape[1] == 0) continue;
    if (vocabulary && (output == *vocabulary || tensor.shape[1] == *vocabulary)) continue;
    widest = std::max(widest.value_or(0), output * output_bytes(configured, tensor.dtype));
  }
  return widest;
}

}  // namespace loadline::forward
