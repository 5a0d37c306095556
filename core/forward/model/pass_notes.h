// Notes beside the figures of a pass: reasons why they may not hold.
#pragma once

#include "core/forward/model/forward_model.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace loadline {

// Notes on positions beyond a learned table, a sequence on which nothing depends, an encoder that has run in
// an earlier pass, and parts that the asset leaves out. Empty for a model without a graph of an architecture.
std::vector<std::string> pass_notes(const ForwardModel& model, std::uint64_t batch, std::uint64_t sequence,
                                    std::uint64_t past);

// A note for each part of a configuration that the asset leaves out: "vision_config is not described: text
// model only".
std::vector<std::string> left_out(const Architecture& architecture, const ModelConfig& config);

// The bytes that one more token of one sequence adds to the cache after this pass. They become fewer once
// windows are full. Nothing without a graph.
std::optional<std::uint64_t> cache_growth(const ForwardModel& model, std::uint64_t sequence,
                                          std::uint64_t past);
// The widest window of a cache; 0 without one.
std::uint64_t widest_window(const ForwardModel& model);

}  // namespace loadline
