// Merges a LoRA adapter into its base.
#pragma once

#include "core/forward/family/settings.h"
#include "exporters/exporter.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace loadline::exporters {

// --- The settings of a LoRA adapter: PEFT's adapter_config.json.

inline constexpr std::string_view kLoraConfig = "adapter_config.json";
inline constexpr std::size_t kMostLoraConfig =
    (4 << 20) + 1;  // bytes to read of it: one more than can be parsed

// Modules of a model by their paths.
struct LoraModules {
  std::vector<std::string> names = {};  // of modules whose path is the name, or ends with it
  std::string expression = {};          // a regular expression that fits the whole path; empty: none
  bool contain(std::string_view module) const;
};

struct LoraConfig {
  std::uint64_t rank = 0;
  double alpha = 0;
  bool rank_stabilized = false;  // scale alpha / sqrt(rank) instead of alpha / rank
  bool fan_in_fan_out = false;   // weights are stored as inputs x outputs, as GPT-2's are
  // For modules whose path is, or ends with, what one of these regular expressions fits: the first counts.
  std::vector<std::pair<std::string, double>> ranks = {}, alphas = {};
  std::optional<LoraModules> targets = {};  // nothing: not said
  LoraModules excluded = {};
  std::vector<std::uint64_t> layers = {};     // of the targets, only those in these layers; empty: in all
  std::vector<std::string> layer_lists = {};  // what the layers are counted in: "layers"; empty: any
  std::vector<forward::Setting> unaccounted = {};

  std::uint64_t rank_of(std::string_view module) const;
  // The factor of the product of a module's two factors.
  double scale_of(std::string_view module) const;
  // The setting by which PEFT gives this module no factors, whatever the adapter holds; empty if it does.
  std::string_view kept_out_by(std::string_view module) const;
};

// `path` is for messages. Throws Error{malformed | limit} for a text that is no such configuration, and
// Error{unsupported} with the reason for one that a sum of weights cannot express.
LoraConfig parse_lora_config(std::string_view text, const std::string& path);

// --- A LoRA adapter and its base as one conversion: W + scale * B x A, computed while the weights are
// copied.

struct LoraMerge {
  // The base with the adapter's tensors behind its own. Metadata, logical tensors and notes are the base's.
  graph::MetaGraphPtr graph;
  std::shared_ptr<const TensorRecipes> recipes;
  std::uint64_t merged = 0;    // weights that get a product added
  std::uint64_t replaced = 0;  // other weights that the adapter holds whole
};

// Pairs the adapter's tensors, named as PEFT saves them, with weights of the base. `outtype` is that of the
// conversion: weights of the base that are quantized or packed need one. Throws Error{malformed} for tensors
// whose parts or shapes do not fit, and Error{unsupported} with the reason for what cannot be merged: a
// weight that the base does not have, tied weights, convolutions, tensors that are no LoRA.
LoraMerge merge_lora(const graph::MetaGraph& base, const graph::MetaGraph& adapter, const LoraConfig& config,
                     std::optional<graph::DType> outtype);

}  // namespace loadline::exporters
