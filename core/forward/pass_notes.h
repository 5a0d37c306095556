// What a reader of a pass's figures should know beside them.
#pragma once

#include "core/forward/forward_model.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace loadline {

// Positions beyond a learned table, a sequence that nothing depends on, an encoder that has run before, parts
// that the asset leaves out. Nothing for a model without a graph of an architecture.
std::vector<std::string> pass_notes(const ForwardModel& model, std::uint64_t batch, std::uint64_t sequence,
                                    std::uint64_t past);

// "vision_config is not described: text model only": of a configuration's parts that the asset leaves out.
std::vector<std::string> left_out(const Architecture& architecture, const ModelConfig& config);

// What one more token of one sequence adds to the cache behind this pass: less than at first where windows
// are full. Nothing without a graph.
std::optional<std::uint64_t> cache_growth(const ForwardModel& model, std::uint64_t sequence,
                                          std::uint64_t past);
// The widest window of a cache; 0 without one.
std::uint64_t widest_window(const ForwardModel& model);

}  // namespace loadline
