// Estimates without an architecture. What each layer leaves in the cache, by the settings alone: the same for
// folders, for configurations without weights, and for the keys of GGUF files. The rules are those of the
// cache classes of transformers 5; other frameworks keep the same numbers in other types.
#include "core/assets/expression.h"
#include "core/base/checked_arithmetic.h"
#include "core/base/text.h"
#include "core/forward/family/model_config.h"
#include "core/forward/model/forward_model.h"
#include "core/forward/model/layer_settings.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <tuple>

#include <fmt/format.h>

namespace loadline::forward {

// --- The numbers that a layer keeps for each token, and those of a state.

namespace {

using assets::Datum;
using Kind = LayerKind;
using Kinds = std::vector<Kind>;

struct StateSize {
  std::uint64_t convolution = 0;  // inputs and the like, in the model's type
  std::uint64_t recurrent = 0;    // in the model's type or in F32, as the framework decides
  std::uint64_t single = 0;       // in F32
};

class LayerSizes {
 public:
  explicit LayerSizes(const Settings& settings) : settings_(settings) {
    width_ = settings.number({"hidden_size", "n_embd", "d_model", "dim", "d", "embed_dim"}).value_or(0);
    decodes_ = settings.on("is_encoder_decoder") || settings.on("root.is_encoder_decoder");
  }
  // llama.cpp without flash attention keeps the values of all layers as wide as the widest.
  void pad_values(std::uint64_t widest) { widest_values_ = widest; }

  bool has_encoder() const { return decodes_; }
  // Heads that attend; 0 if no setting tells.
  std::uint64_t heads(std::uint64_t i) const {
    if (const auto own = decodes_
                             ? settings_.number({"decoder_attention_heads", "num_decoder_attention_heads"}, i)
                             : std::nullopt)
      return *own;
    return settings_
        .number({"num_attention_heads", "n_head", "num_heads", "n_heads", "H", "attention_heads",
                 "decoder_attention_heads", "num_decoder_attention_heads"},
                i)
        .value_or(0);
  }
  // Heads of keys and values; 0 for a layer without attention.
  std::uint64_t groups(std::uint64_t i, bool windowed) const {
    if (settings_.list("block_configs") != nullptr) {
      const auto shared =
          whole(settings_.config().get(fmt::format("block_configs.{}.attention.n_heads_in_group", i)));
      if (shared.value_or(0) > 0) return heads(i) / *shared;
    }
    if (const auto own =
            settings_.number({"swa_num_key_value_heads", "attention_other_setting.num_attention_groups"}, i);
        own && windowed)
      return *own;
    if (const auto own = settings_.number({"num_global_key_value_heads"}, i);
        own && !windowed && !settings_.off("attention_k_eq_v"))
      return *own;
    if (settings_.on("multi_query") && !settings_.on("new_decoder_architecture")) return 1;
    if (const auto own = settings_.number({"multi_query_group_num"}, i);
        own && settings_.on("multi_query_attention"))
      return *own;
    const auto usual = settings_.number({"num_key_value_heads", "num_kv_heads", "n_head_kv", "K",
                                         "n_kv_heads", "attn_config.kv_n_heads", "num_attention_groups"},
                                        i);
    // MiMo-V2 has twice as many in windows, if no setting above says it
    const std::string* const type = settings_.value("model_type").text();
    const bool twice = windowed && usual && type != nullptr && type->starts_with("mimo_v2");
    return usual ? *usual * (twice ? 2 : 1) : heads(i);
  }
  std::uint64_t key_width(std::uint64_t i, bool windowed) const {
    if (const auto own = settings_.number({"swa_head_dim", "attention_other_setting.head_dim"}, i);
        own && windowed)
      return *own;
    if (const auto own = settings_.number({"global_head_dim"}, i); own && !windowed) return *own;
    if (const auto own =
            settings_.number({"head_dim", "attention_head_dim", "d_kv", "kv_channels", "dim_head"}, i))
      return *own;
    const std::uint64_t attending = heads(i);
    return attending == 0 ? 0 : width_ / attending;
  }

  // Numbers that a token adds to layer i: of latent attention, or keys and values.
  std::uint64_t each(std::uint64_t i, bool windowed) const {
    if (const auto rank = settings_.number({"kv_lora_rank"}, i)) {
      const auto* const turned = settings_.list("no_rope_layers");  // 0: no part for positions
      const bool bare = turned != nullptr && i < turned->size() && !(*turned)[i].truth();
      return *rank + (bare ? 0 : settings_.number({"qk_rope_head_dim"}, i).value_or(0));
    }
    const std::uint64_t keys = groups(i, windowed) * key_width(i, windowed);
    return groups(i, windowed) == 0 ? 0 : keys + std::max(values(i, windowed), widest_values_);
  }
  std::uint64_t values(std::uint64_t i, bool windowed) const {
    return groups(i, windowed) * value_width(i, windowed);
  }
  // Numbers of a token that the encoder has read, where they are others than those of the decoder's own.
  std::optional<std::uint64_t> crossing(std::uint64_t i) const {
    const auto groups = settings_.number({"cross_num_key_value_heads"}, i),
               width = settings_.number({"cross_head_dim"}, i);
    return groups && width ? std::optional(2 * *groups * *width) : std::nullopt;
  }
  // Numbers that an indexer keeps of a token beside the keys, where layer i has one of its own.
  std::uint64_t indexed(std::uint64_t i) const {
    if (const auto* const types = settings_.list("indexer_types"); types && i < types->size())
      if ((*types)[i].text() != nullptr && *(*types)[i].text() == "shared") return 0;
    return settings_.number({"index_topk"}) ? settings_.number({"index_head_dim"}, i).value_or(0) : 0;
  }

  // Nothing if no setting gives the size, or an absurd one.
  std::optional<StateSize> state() const {
    constexpr std::uint64_t kMostNumbers = std::uint64_t{1} << 50;
    const auto size = told_state();
    return size && std::max({size->convolution, size->recurrent, size->single}) <= kMostNumbers
               ? size
               : std::nullopt;
  }
  // Of layer i, which has attention too: else that of short convolutions of keys, values, and what goes into
  // and comes out of a layer (Inkling).
  std::optional<StateSize> state_beside(std::uint64_t i, bool windowed) const {
    const auto kernel = settings_.number({"conv_kernel_size"});
    if (const auto told = state(); told || !kernel) return told;
    return StateSize{.recurrent = 2 * *kernel * (groups(i, windowed) * key_width(i, windowed) + width_)};
  }
  // Whether states stand alone: no layer has attention.
  bool recurrent_only() const {
    return !settings_.number({"num_attention_heads", "n_head", "n_heads", "H", "attention_heads"}, 0);
  }
  std::uint64_t width() const { return width_; }

 private:
  std::optional<StateSize> told_state() const {
    const auto kernel =
        settings_.number({"linear_conv_kernel_dim", "linear_attn_config.short_conv_kernel_size",
                          "short_conv_kernel_size", "mamba_d_conv", "conv_kernel"});
    const auto length = settings_.number({"conv_L_cache"});
    // of a GGUF file, worked out from its keys; products of such keys may exceed the limit of one
    if (const std::int64_t* const exact = settings_.value("recurrent_state").number();
        exact != nullptr && *exact > 0 && *exact < std::int64_t{1} << 40)
      return StateSize{.single = static_cast<std::uint64_t>(*exact)};
    if (const auto found = delta_state(kernel.value_or(0))) return found;
    if (const auto found = mamba_state(kernel.value_or(0))) return found;
    if (const auto found = recurrent_network_state()) return found;
    if (const auto lru = settings_.number({"lru_width"}))
      return StateSize{*lru * (settings_.number({"conv1d_width"}).value_or(1) - 1), *lru};
    return length ? std::optional(StateSize{.convolution = *length * width_}) : std::nullopt;
  }

  std::uint64_t value_width(std::uint64_t i, bool windowed) const {
    if (const auto own = settings_.number({"swa_v_head_dim"}, i); own && windowed) return *own;
    return whole(settings_.value("v_head_dim")).value_or(key_width(i, windowed));
  }

  // Linear attention with a matrix for each head: gated delta rules, and heads all alike.
  std::optional<StateSize> delta_state(std::uint64_t kernel) const {
    const auto values = settings_.number({"linear_num_value_heads"}),
               keys = settings_.number({"linear_num_key_heads"}),
               key = settings_.number({"linear_key_head_dim"}),
               value = settings_.number({"linear_value_head_dim"});
    if (values && keys && key && value)
      return StateSize{(2 * *keys * *key + *values * *value) * kernel, *values * *key * *value};
    const auto count = settings_.number({"linear_num_heads", "linear_attn_config.num_heads"}),
               side = settings_.number({"linear_head_dim", "linear_attn_config.head_dim"});
    if (count && side) return StateSize{3 * *count * *side * kernel, *count * *side * *side};
    // MiniMax: lightning attention, without a convolution
    if (settings_.list("attn_type_list") != nullptr || !settings_.value("linear_attn_alpha_factor").null())
      return StateSize{.recurrent = heads(0) * key_width(0, false) * key_width(0, false)};
    return std::nullopt;
  }

  std::optional<StateSize> mamba_state(std::uint64_t kernel) const {
    const auto states = settings_.number({"mamba_d_state", "ssm_state_size", "state_size"});
    if (!states) return std::nullopt;
    const bool alone = recurrent_only();
    auto count = settings_.number({"mamba_n_heads", "mamba_num_heads", "n_mamba_heads"}),
         side = settings_.number({"mamba_d_head", "mamba_head_dim", "mamba_headdim"});
    if (!count && alone) count = settings_.number({"num_heads"});
    if (!side && alone) side = settings_.number({"head_dim"});
    const auto groups = settings_.number({"mamba_n_groups", "mamba_ngroups", "n_groups"});
    const auto times = settings_.number({"mamba_expand", "expand"});
    auto inner = settings_.number({"mamba_d_ssm"});
    if (!inner && count && side) inner = *count * *side;
    if (!inner && times) inner = *times * width_;
    if (!inner) return std::nullopt;
    return StateSize{(*inner + 2 * groups.value_or(0) * *states) * kernel, *inner * *states};
  }

  // xLSTM: a matrix, a vector and a number for each head. RWKV: five vectors, three of them in F32.
  std::optional<StateSize> recurrent_network_state() const {
    const auto rounded = [&](std::string_view factor) -> std::optional<std::uint64_t> {
      constexpr std::uint64_t kMultiple = 64;
      const Datum& times = settings_.value(factor);
      const double real = times.real() ? *times.real() : static_cast<double>(whole(times).value_or(0));
      const double wide = static_cast<double>(width_) * real;
      if (!(wide > 0) || wide > static_cast<double>(kMostOfSetting)) return std::nullopt;
      return (static_cast<std::uint64_t>(wide) + kMultiple - 1) / kMultiple * kMultiple;
    };
    const auto keys = rounded("qk_dim_factor"), values = rounded("v_dim_factor"),
               count = settings_.number({"num_heads"});
    if (keys && values && count) {
      const std::uint64_t key = *keys / *count, value = *values / *count;
      return StateSize{.convolution = *count * (key * value + key + 1)};
    }
    const std::string* const type = settings_.value("model_type").text();
    if (type == nullptr || *type != "rwkv" || width_ == 0) return std::nullopt;
    return StateSize{.convolution = 2 * width_, .single = 3 * width_};
  }

  const Settings& settings_;
  std::uint64_t width_ = 0, widest_values_ = 0;
  bool decodes_ = false;
};

// --- Adds the layers up, at least and at most.

// A model of such a class reads a text once and keeps nothing of it.
bool reads_once(std::string_view name) {
  constexpr std::array<std::string_view, 8> kEndings = {"ForMaskedLM",
                                                        "ForImageClassification",
                                                        "ForObjectDetection",
                                                        "ForSemanticSegmentation",
                                                        "ForDepthEstimation",
                                                        "ForCTC",
                                                        "ForAudioClassification",
                                                        "EncoderModel"};
  return std::ranges::any_of(kEndings, [&](std::string_view ending) { return name.ends_with(ending); });
}
// A model of such a class may.
bool may_read_once(std::string_view name) {
  return (name.ends_with("Model") && !name.ends_with("LMHeadModel")) ||
         (name.find("For") != std::string_view::npos &&
          (name.ends_with("Classification") || name.ends_with("Answering")));
}

// The bytes of entries, by what they have in common.
class Tally {
 public:
  enum class Ends { both, least, most };

  void add(std::optional<std::uint64_t> bytes, std::uint64_t window, Ends ends = Ends::both,
           std::uint64_t tokens = 1) {
    if (ends != Ends::most) add(least_, bytes, window, tokens);
    if (ends != Ends::least) add(most_, bytes, window, tokens);
  }
  void add_state(std::optional<std::uint64_t> least, std::optional<std::uint64_t> most) {
    add(least_state_, least);
    add(most_state_, most);
  }
  void because(std::string reason) {
    if (std::ranges::find(reasons_, reason) == reasons_.end()) reasons_.push_back(std::move(reason));
  }

  // Nothing beyond 64 bits.
  std::optional<CacheEstimate> estimate() && {
    if (!fits_) return std::nullopt;
    return CacheEstimate{growth(least_, least_state_), growth(most_, most_state_), std::move(reasons_)};
  }

 private:
  using Parts = std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t>;  // by window and tokens

  void add(std::uint64_t& to, std::optional<std::uint64_t> bytes) {
    const auto sum = bytes ? checked_add(to, *bytes) : std::nullopt;
    fits_ = fits_ && sum;
    to = sum.value_or(0);
  }
  void add(Parts& parts, std::optional<std::uint64_t> bytes, std::uint64_t window, std::uint64_t tokens) {
    if (bytes != std::uint64_t{0}) add(parts[{window, tokens}], bytes);
  }
  static CacheGrowth growth(const Parts& parts, std::uint64_t state) {
    CacheGrowth growth{.state = state};
    for (const auto& [common, bytes] : parts)
      growth.parts.push_back({.bytes = bytes, .tokens = common.second, .window = common.first});
    return growth;
  }

  Parts least_, most_;
  std::uint64_t least_state_ = 0, most_state_ = 0;
  std::vector<std::string> reasons_;
  bool fits_ = true;
};

class Estimator {
 public:
  Estimator(const Settings& settings, std::uint64_t cache_bytes, std::uint64_t model_bytes)
      : settings_(settings),
        sizes_(settings),
        window_(window_of(settings).value_or(0)),
        bytes_(cache_bytes),
        model_bytes_(model_bytes),
        shared_(settings.number({"num_kv_shared_layers"}).value_or(0)) {
    LayerKinds told = layer_kinds(settings);
    kinds_ = std::move(told.kinds);
    for (const std::string& word : told.unknown)
      tally_.because(fmt::format("layers of the kind '{}' are not known", safe_display(word, 40)));
    const bool lists = settings.list("num_key_value_heads") != nullptr;  // 0 heads: a layer with a state
    const bool beside = sizes_.state() && !lists;
    // xLSTM has heads, and no attention
    if (kinds_.empty() && !settings.value("qk_dim_factor").null())
      kinds_.assign(settings.layers(), Kind::state);
    if (kinds_.empty())
      kinds_.assign(settings.layers(),
                    beside ? (sizes_.recurrent_only() ? Kind::state : Kind::both) : Kind::full);
    if (const auto* const forward = settings.list("intermediate_size"))
      feeds_apart_ = std::ranges::any_of(*forward, [](const Datum& each) { return !each.truth(); });
    if (!settings.on("pads_values")) return;
    std::uint64_t widest = 0;
    for (std::uint64_t i = 0; i < kinds_.size(); ++i)
      widest = std::max(widest, sizes_.values(i, kinds_[i] == Kind::window));
    sizes_.pad_values(widest);
  }

  // Nothing if the settings say too little.
  std::optional<CacheEstimate> estimate() {
    for (std::uint64_t i = 0; i < kinds_.size(); ++i) add_layer(i, kind_of(i));
    return known_ ? std::move(tally_).estimate() : std::nullopt;
  }

 private:
  using Ends = Tally::Ends;

  // A list of heads may say 0 for layers without attention.
  Kind kind_of(std::uint64_t i) const {
    const Kind kind = kinds_[i];
    if (kind != Kind::full && kind != Kind::window && kind != Kind::maybe_window) return kind;
    if (sizes_.each(i, kind == Kind::window) > 0) return kind;
    const auto* const forward = settings_.list("intermediate_size");
    const bool feeds = feeds_apart_ && i < forward->size() && (*forward)[i].truth();
    return sizes_.state() && !feeds ? Kind::state : Kind::none;
  }

  void add_layer(std::uint64_t i, Kind kind) {
    if (kind == Kind::none) {
      return;
    } else if (kind == Kind::state) {
      add_state(i, kind, Ends::both);
    } else if (kind == Kind::compressed) {
      add_compressed(i);
    } else {
      if (kind == Kind::both || kind == Kind::both_window) add_state(i, kind, Ends::both);
      if (kind == Kind::unknown) add_state(i, kind, Ends::most);
      add_attention(i, kind);
    }
  }

  void add_attention(std::uint64_t i, Kind kind) {
    const bool windowed = kind == Kind::window || kind == Kind::both_window;
    const std::uint64_t numbers = sizes_.each(i, windowed);
    known_ = known_ || numbers > 0;
    if (numbers == 0 || shares(i)) return;
    const bool limited = windowed || kind == Kind::chunk;
    const std::uint64_t keys = limited ? 0 : sizes_.indexed(i);
    // Dots 3 turns what an indexer sees in F32, by positions of its own, and keeps it so
    const bool single = !settings_.value("rope_parameters.indexed_attention.rope_type").null();
    const auto bytes = checked_add(numbers * bytes_, keys * (single ? sizeof(float) : bytes_));
    const std::uint64_t chunk = settings_.number({"attention_chunk_size"}).value_or(window_);
    if (kind == Kind::cross) {
      tally_.because("layers of cross-attention hold what an encoder gives");
      tally_.add(bytes, 0, Ends::most);
    } else if (kind == Kind::unknown) {
      tally_.add(bytes, 0, Ends::most);
    } else if (kind == Kind::maybe_window) {
      tally_.because("a window is set, but not in which layers");
      tally_.add(bytes, chunk, Ends::least);
      tally_.add(bytes, 0, Ends::most);
    } else {
      tally_.add(bytes, windowed ? window_ : kind == Kind::chunk ? chunk : 0);
    }
    // CPM-Ant puts a prompt of its own before each text
    if (const auto prompt = settings_.number({"prompt_length"}); prompt && settings_.number({"prompt_types"}))
      tally_.add_state(checked_mul(numbers * bytes_, *prompt), checked_mul(numbers * bytes_, *prompt));
    if (!sizes_.has_encoder()) return;
    tally_.because("the text that the encoder reads is taken to be as long");
    const auto crossing = sizes_.crossing(i);
    tally_.add(crossing ? checked_mul(*crossing, bytes_) : bytes, 0);
  }

  // DeepSeek-V4: a window of single vectors, one entry for several tokens, and what waits to become one.
  void add_compressed(std::uint64_t i) {
    const std::uint64_t width = sizes_.key_width(i, false);
    const auto* const ratios = settings_.list("compress_ratios");
    const auto* const words = settings_.list("layer_types");
    std::optional<std::uint64_t> tokens;
    if (ratios != nullptr && i < ratios->size()) tokens = whole((*ratios)[i]);
    if (words != nullptr && i < words->size() && (*words)[i].text() != nullptr)
      tokens = settings_.number({"compress_rates." + *(*words)[i].text()});
    if (width == 0 || !tokens) return tally_.because("how layers compress their cache is not known");
    known_ = true;
    tally_.add(checked_mul(width, bytes_), window_);
    if (*tokens == 0) return;  // the window alone
    constexpr std::uint64_t kSparse =
        16;  // so few tokens: an indexer chooses among the entries, and they overlap
    const bool sparse = *tokens < kSparse;
    const std::uint64_t entry = width + (sparse ? settings_.number({"index_head_dim"}).value_or(0) : 0);
    tally_.add(checked_mul(entry, bytes_), 0, Ends::both, *tokens);
    const std::uint64_t waiting = sparse ? (2 * *tokens - 2 + *tokens) : *tokens - 1;
    tally_.because("tokens wait to be compressed");
    tally_.add_state(0, checked_mul(2 * entry * waiting, bytes_));
  }

  void add_state(std::uint64_t i, Kind kind, Ends ends) {
    const bool beside = kind == Kind::both || kind == Kind::both_window;
    const auto size = beside ? sizes_.state_beside(i, kind == Kind::both_window) : sizes_.state();
    if (!size) {
      tally_.because("the size of recurrent states is not known");
      // as large as the largest of known families of this width
      constexpr std::uint64_t kNumbers = 2 * 256;
      return tally_.add_state(0, checked_mul(sizes_.width() * kNumbers, sizeof(float)));
    }
    known_ = true;
    const std::uint64_t narrow = std::min<std::uint64_t>(model_bytes_, sizeof(float));
    const std::uint64_t least =
        size->convolution * model_bytes_ + size->recurrent * narrow + size->single * sizeof(float);
    const std::uint64_t most =
        size->convolution * model_bytes_ + (size->recurrent + size->single) * sizeof(float);
    if (least != most)
      tally_.because("recurrent states take 2 or 4 bytes a number, as the framework decides");
    tally_.add_state(ends == Ends::most ? 0 : least, most);
  }

  // Whether the layer uses the keys and values of another.
  bool shares(std::uint64_t i) const {
    if (i + std::min<std::uint64_t>(shared_, kinds_.size()) >= kinds_.size()) return true;
    const auto* const sources = settings_.list("kv_source_layers");
    return sources != nullptr && i < sources->size() &&
           !((*sources)[i] == Datum(static_cast<std::int64_t>(i)));
  }

  const Settings& settings_;
  LayerSizes sizes_;
  Kinds kinds_;
  Tally tally_;
  std::uint64_t window_, bytes_, model_bytes_, shared_;
  bool feeds_apart_ = false;  // Nemotron-H: layers without heads either feed forward or have a state
  bool known_ = false;
};

}  // namespace

std::optional<std::uint64_t> CacheGrowth::bytes(std::uint64_t tokens) const {
  std::optional<std::uint64_t> sum = state;
  for (const CachePart& part : parts) {
    const std::uint64_t held = part.window == 0 ? tokens : std::min(tokens, part.window);
    const auto bytes = checked_mul(part.bytes, held / part.tokens);
    sum = sum && bytes ? checked_add(*sum, *bytes) : std::nullopt;
  }
  return sum;
}

std::uint64_t CacheGrowth::each(std::uint64_t full) const {
  std::uint64_t sum = 0;
  for (const CachePart& part : parts)
    if (part.window == 0 || part.window > full)
      sum = capped_add(sum, part.bytes / part.tokens + (part.bytes % part.tokens != 0));
  return sum;
}

std::optional<CacheEstimate> estimated_cache(const ModelConfig& config, std::optional<graph::DType> element) {
  Settings settings(config);
  settings.set_layers(layers_of(settings));
  const auto own = graph::dtype_from(&graph::DTypeInfo::torch, config.dtype_name("float32"));
  if (!element) element = own;
  if (!element || graph::dtype_info(*element).block_elements != 1) return std::nullopt;
  if (settings.layers() == 0 || settings.layers() > kMostLayers) return std::nullopt;
  const std::uint64_t bytes = graph::dtype_info(*element).block_bytes;
  auto estimate = Estimator(settings, bytes, own ? graph::dtype_info(*own).block_bytes : bytes).estimate();
  if (!estimate) return estimate;
  const std::vector<std::string> classes = config.architectures();
  const std::string name = classes.empty() ? "" : classes.front();
  if (reads_once(name)) return CacheEstimate{};
  const bool encodes = settings.off("root.is_decoder") && !settings.value("type_vocab_size").null();
  if (encodes || may_read_once(name)) {
    estimate->least = {};
    estimate->reasons.push_back(fmt::format("{} may keep nothing of a text", safe_display(name, 60)));
  }
  return estimate;
}

// --- The usual names of weights tell how wide the widest linear layer is.

namespace {

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

}  // namespace

std::optional<std::uint64_t> activation_bound_per_token(const graph::MetaGraph& graph,
                                                        const ModelConfig& config) {
  constexpr std::uint64_t kMostWidth = std::uint64_t{1} << 32;  // no layer is wider
  const auto vocabulary = config.first_count({"vocab_size", "n_vocab", "padded_vocab_size"});
  const std::optional<graph::DType> configured =
      graph::dtype_from(&graph::DTypeInfo::torch, config.dtype_name(""));
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
