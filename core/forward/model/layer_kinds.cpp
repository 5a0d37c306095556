// Reads the lists, patterns and intervals that configurations have for the kinds of their layers.
#include "core/forward/model/layer_settings.h"

#include <algorithm>

namespace loadline::forward {

std::uint64_t layers_of(const Settings& settings) {
  if (settings.on("is_encoder_decoder") || settings.on("root.is_encoder_decoder"))
    if (const auto own = settings.number({"num_decoder_layers", "decoder_layers"})) return *own;
  if (const auto count = settings.number({"num_hidden_layers", "n_layer", "num_layers", "n_layers", "L",
                                          "decoder_layers", "num_decoder_layers", "layers"}))
    return *count;
  for (const char* const key : {"layer_types", "layers_block_type"})
    if (const auto* const words = settings.list(key)) return words->size();
  const std::string* const letters = settings.value("hybrid_override_pattern").text();
  return letters == nullptr ? 0 : letters->size();
}

std::optional<std::uint64_t> window_of(const Settings& settings) {
  if (settings.off("use_sliding_window")) return std::nullopt;
  return settings.number({"window_positions", "sliding_window", "sliding_window_size",
                          "attention_window_size", "window_size", "local_attention"});
}

namespace {

using assets::Datum;
using Kind = LayerKind;
using Kinds = std::vector<Kind>;

struct KindWord {
  std::string_view word;
  Kind kind;
};
constexpr KindWord kWords[] = {
    {"full_attention", Kind::full},
    {"attention", Kind::full},
    {"global", Kind::full},
    {"global_attention", Kind::full},
    {"indexed_attention", Kind::full},
    {"deepseek_sparse_attention", Kind::full},
    {"qwen_sparse_attention", Kind::full},
    {"minimax_m3_sparse", Kind::full},
    {"sliding_attention", Kind::window},
    {"local", Kind::maybe_window},  // of GPT-Neo, whose cache has all tokens in transformers
    {"local_attention", Kind::window},
    {"window_attention", Kind::window},
    {"reference_sliding_attention", Kind::maybe_window},  // all tokens of the prompt
    {"chunked_attention", Kind::chunk},
    {"cross_attention", Kind::cross},
    {"linear_attention", Kind::state},
    {"lightning_attention", Kind::state},
    {"mamba", Kind::state},
    {"mamba2", Kind::state},
    {"recurrent", Kind::state},
    {"conv", Kind::state},
    {"hybrid", Kind::both},
    {"hybrid_sliding", Kind::both_window},
    {"heavily_compressed_attention", Kind::compressed},
    {"compressed_sparse_attention", Kind::compressed},
    {"moe", Kind::none},
    {"mlp", Kind::none},
};

// In the order of its functions; each gives nothing if its settings are missing.
class KindReader {
 public:
  explicit KindReader(const Settings& settings) : settings_(settings), count_(settings.layers()) {}

  LayerKinds read() {
    Kinds kinds = by_words();
    if (kinds.empty()) kinds = by_blocks();
    if (kinds.empty()) kinds = by_members();
    if (kinds.empty()) kinds = by_period();
    if (kinds.empty()) kinds = by_window();
    if (const auto* const crossing = settings_.list("cross_attention_layers"); crossing && kinds.empty())
      kinds = of_members(*crossing, 0, Kind::cross, Kind::full);
    return {std::move(kinds), std::move(unknown_)};
  }

 private:
  template <typename Tell>
  Kinds each(Tell tell) const {
    Kinds kinds;
    for (std::uint64_t i = 0; i < count_; ++i) kinds.push_back(tell(i));
    return kinds;
  }

  Kind kind_of(const Datum& word) {
    if (word.text() == nullptr) return Kind::unknown;
    const auto known = std::ranges::find(kWords, std::string_view(*word.text()), &KindWord::word);
    if (known != std::end(kWords)) return known->kind;
    if (std::ranges::find(unknown_, *word.text()) == unknown_.end() && unknown_.size() < 3)
      unknown_.push_back(*word.text());
    return Kind::unknown;
  }

  Kinds by_words() {
    for (const char* const key : {"layer_types", "layers_block_type", "attention_layers"}) {
      const auto* const words = settings_.list(key);
      if (words != nullptr && words->size() >= count_ && (*words)[0].text() != nullptr)
        return each([&](std::uint64_t i) { return kind_of((*words)[i]); });
    }
    // RecurrentGemma: the words begin again, and its attention has a window
    if (const auto* const words = settings_.list("block_types"); words != nullptr && !words->empty())
      return each([&](std::uint64_t i) {
        const Kind kind = kind_of((*words)[i % words->size()]);
        return kind == Kind::full && window_of(settings_) ? Kind::window : kind;
      });
    const std::string* const letters = settings_.value("hybrid_override_pattern").text();
    if (letters == nullptr || letters->size() < count_) return {};
    return each([&](std::uint64_t i) {
      return (*letters)[i] == 'M' ? Kind::state : (*letters)[i] == '*' ? Kind::full : Kind::none;
    });
  }

  Kinds by_blocks() const {
    if (const auto* const ratios = settings_.list("compress_ratios"); ratios && ratios->size() >= count_)
      return Kinds(count_, Kind::compressed);
    const auto* const blocks = settings_.list("block_configs");
    if (blocks == nullptr || blocks->size() < count_) return {};
    return each([&](std::uint64_t i) {
      const auto says = [&](std::string_view what) {
        return settings_.config().get(fmt::format("block_configs.{}.attention.{}", i, what)).truth();
      };
      return says("no_op") || says("replace_with_linear") ? Kind::none : Kind::full;
    });
  }

  Kinds of_members(const std::vector<Datum>& members, std::int64_t first, Kind inside, Kind outside) const {
    Kinds kinds(count_, outside);
    for (const Datum& member : members)
      if (member.number() != nullptr && *member.number() >= first)
        if (const auto i = static_cast<std::uint64_t>(*member.number() - first); i < count_)
          kinds[i] = inside;
    return kinds;
  }

  Kinds by_members() const {
    if (const auto* const full = settings_.list("linear_attn_config.full_attn_layers"))
      return of_members(*full, 1, Kind::full, Kind::state);  // counted from 1
    for (const char* const key : {"attn_layer_indices", "full_attn_idxs"})
      if (const auto* const full = settings_.list(key)) return of_members(*full, 0, Kind::full, Kind::state);
    if (const auto* const hybrid = settings_.list("hybrid_layer_ids"))
      return of_members(*hybrid, 0, Kind::both, Kind::state);
    if (const auto* const full = settings_.list("attn_type_list"); full && full->size() >= count_)
      return each([&](std::uint64_t i) { return (*full)[i].truth() ? Kind::full : Kind::state; });
    return {};
  }

  Kinds by_period() const {
    if (const auto period = settings_.number({"attn_layer_period"})) {
      const std::uint64_t offset = settings_.number({"attn_layer_offset"}).value_or(0);
      return each(
          [&](std::uint64_t i) { return i % *period == offset % *period ? Kind::full : Kind::state; });
    }
    if (const auto every = settings_.number({"full_attention_interval"}))
      return each([&](std::uint64_t i) { return (i + 1) % *every == 0 ? Kind::full : Kind::state; });
    if (const auto every = settings_.number({"global_attn_every_n_layers"}))
      return each([&](std::uint64_t i) { return i % *every == 0 ? Kind::full : Kind::window; });
    return {};
  }

  Kinds by_window() const {
    if (settings_.number({"attention_chunk_size"})) return Kinds(count_, Kind::maybe_window);
    if (!window_of(settings_)) return {};
    const Datum& pattern = settings_.value("sliding_window_pattern");
    if (const auto every = whole(pattern); every.value_or(0) > 0)
      return each([&](std::uint64_t i) { return (i + 1) % *every == 0 ? Kind::full : Kind::window; });
    if (pattern.list() != nullptr && pattern.list()->size() >= count_)
      return each([&](std::uint64_t i) { return (*pattern.list())[i].truth() ? Kind::window : Kind::full; });
    if (pattern.text() != nullptr && !pattern.text()->empty())  // "LLLG" for local and global
      return each([&](std::uint64_t i) {
        return (*pattern.text())[i % pattern.text()->size()] == 'L' ? Kind::window : Kind::full;
      });
    const auto below = whole(settings_.value("max_window_layers"));
    if (settings_.on("use_sliding_window") && below)
      return each([&](std::uint64_t i) { return i < *below ? Kind::full : Kind::window; });
    return Kinds(count_, Kind::maybe_window);
  }

  const Settings& settings_;
  std::uint64_t count_;
  std::vector<std::string> unknown_;
};

}  // namespace

LayerKinds layer_kinds(const Settings& settings) { return KindReader(settings).read(); }

}  // namespace loadline::forward
