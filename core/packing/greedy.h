// Places one box after the other: fast heuristics for problems of any size.
#pragma once

#include "core/packing/arena_index.h"
#include "core/packing/problem.h"
#include "core/packing/search_control.h"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace loadline {

// The order in which boxes are placed, and how each finds its place.
struct GreedyRule {
  std::string_view id;
  Fit fit;
  // Whether a goes before b; ties by number.
  bool (*before)(const SectionModel& model, std::uint32_t a, std::uint32_t b);
};
// The first rule is TensorFlow Lite's planner: boxes alive throughout first, then the largest, then the
// earliest.
std::span<const GreedyRule> greedy_rules();

std::vector<std::uint32_t> order_by(const SectionModel& model, const GreedyRule& rule);

struct GreedyPacking {
  std::vector<std::uint64_t> offsets = {};  // by box
  std::uint64_t height = UINT64_MAX;        // including obstacles; UINT64_MAX: the attempt was abandoned
};

// Abandons the packing as soon as a box ends above `most` or `rule` is due. `most` is in units and at most
// kHighestPacking in bytes. `index` belongs to the model and is cleared first.
GreedyPacking pack_in_order(const SectionModel& model, ArenaIndex& index,
                            std::span<const std::uint32_t> order, Fit fit, std::uint64_t most,
                            const StopRule& rule = {});

// Squeaky wheel (Joslin and Clements 1999): boxes that end above `target` move forward in the next round's
// order. Starts from `order`, whose packing has `height`. Stops at `target`, after `rounds` rounds, or when
// `rule` is due. Returns the best packing lower than `height`; its height is UINT64_MAX if there is none.
GreedyPacking squeaky_wheel(const SectionModel& model, ArenaIndex& index, std::vector<std::uint32_t> order,
                            Fit fit, std::uint64_t height, std::uint64_t target, std::uint64_t rounds,
                            std::uint64_t seed, const StopRule& rule);

}  // namespace loadline
