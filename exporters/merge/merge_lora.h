// The settings of a LoRA adapter: PEFT's adapter_config.json.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace loadline {

struct LoraConfig {
  std::uint64_t rank = 0;
  double alpha = 0;
  bool rank_stabilised = false;  // scale alpha / sqrt(rank) instead of alpha / rank
  bool fan_in_fan_out = false;   // weights are stored as inputs x outputs, as GPT-2's are
  // For modules whose path is, or ends with, one of these names: the first that fits counts.
  std::vector<std::pair<std::string, double>> ranks, alphas;

  std::uint64_t rank_of(std::string_view module) const;
  // The factor of the product of a module's two factors.
  double scale_of(std::string_view module) const;
};

// `path` is for messages. Throws Error{malformed | limit} for a text that is no such configuration, and
// Error{unsupported} with the reason for one that a sum of weights cannot express.
LoraConfig parse_lora_config(std::string_view text, const std::string& path);

}  // namespace loadline
