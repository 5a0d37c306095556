// The settings that tell what each layer of a model leaves in the cache.
#pragma once

#include "core/assets/expression.h"
#include "core/forward/family/model_config.h"

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace loadline::forward {

// --- The settings of layers, each read once. Numbers beyond a limit are as if they were missing.

using Keys = std::initializer_list<std::string_view>;

inline constexpr std::uint64_t kMostOfSetting = 1 << 20;  // products of three fit in 64 bits
inline constexpr std::uint64_t kMostLayers = 10'000;

inline std::optional<std::uint64_t> whole(const assets::Datum& value) {
  if (value.number() == nullptr || *value.number() < 0) return std::nullopt;
  const auto number = static_cast<std::uint64_t>(*value.number());
  return number <= kMostOfSetting ? std::optional(number) : std::nullopt;
}

class Settings {
 public:
  explicit Settings(const ModelConfig& config) : config_(config) {}

  const assets::Datum& value(std::string_view key) const {
    const auto known = read_.find(key);
    return known != read_.end() ? known->second
                                : read_.emplace(std::string(key), config_.get(key)).first->second;
  }
  // The first of these keys that holds a whole number above 0.
  std::optional<std::uint64_t> number(Keys keys) const {
    for (const std::string_view key : keys)
      if (const auto found = whole(value(key)); found.value_or(0) > 0) return found;
    return std::nullopt;
  }
  // The same of layer i: its own in per_layer_config, its place in a list that has one for each layer (which
  // may be 0), or that of all layers.
  std::optional<std::uint64_t> number(Keys keys, std::uint64_t i) const {
    for (const std::string_view key : keys) {
      if (const auto own = own_number(key, i)) return own;
      const assets::Datum& all = value(key);
      if (all.list() != nullptr && all.list()->size() >= layers_) {
        if (const auto found = whole((*all.list())[i])) return found;
      } else if (const auto found = whole(all); found.value_or(0) > 0) {
        return found;
      }
    }
    return std::nullopt;
  }
  bool off(std::string_view key) const { return !value(key).null() && !value(key).truth(); }
  bool on(std::string_view key) const { return value(key).truth(); }
  const std::vector<assets::Datum>* list(std::string_view key) const { return value(key).list(); }

  const ModelConfig& config() const { return config_; }
  std::uint64_t layers() const { return layers_; }
  void set_layers(std::uint64_t layers) { layers_ = layers; }

 private:
  // transformers writes the numbers of layers with leading zeros.
  std::optional<std::uint64_t> own_number(std::string_view key, std::uint64_t i) const {
    if (value("per_layer_config").object() == nullptr) return std::nullopt;
    const std::size_t digits = std::to_string(layers_ - 1).size();
    const auto own = whole(config_.get(fmt::format("per_layer_config.{:0{}}.{}", i, digits, key)));
    return own ? own : whole(config_.get(fmt::format("per_layer_config.{}.{}", i, key)));
  }

  const ModelConfig& config_;
  std::uint64_t layers_ = 0;
  mutable std::map<std::string, assets::Datum, std::less<>> read_;
};

// Layers of the part that decodes; 0 if no setting tells.
std::uint64_t layers_of(const Settings& settings);
// Tokens that a window holds; nothing without one.
std::optional<std::uint64_t> window_of(const Settings& settings);

// --- Which layers have attention, windows or states, by the first setting that tells it.

enum class LayerKind : std::uint8_t {
  full,          // keys and values of every token
  window,        // of the tokens in a window
  maybe_window,  // a window is set, but nothing tells in which layers
  chunk,         // of attention_chunk_size tokens
  cross,         // of what an encoder gives
  state,         // a state that does not grow
  both,          // attention and a state
  both_window,
  compressed,  // a window, and an entry for several tokens
  none,
  unknown,
};

struct LayerKinds {
  std::vector<LayerKind> kinds = {};      // of each layer; empty if no setting tells layers apart
  std::vector<std::string> unknown = {};  // words that stand for no known kind, each once
};
LayerKinds layer_kinds(const Settings& settings);

}  // namespace loadline::forward
