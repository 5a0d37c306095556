// One box after the other, each where it fits: fast heuristics of any size.
#pragma once

#include "core/packing/arena_index.h"
#include "core/packing/stop_rule.h"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace loadline {

// In what order boxes are placed, and where.
struct GreedyRule {
  std::string_view id;
  Fit fit;
  // Whether a goes before b; ties by number.
  bool (*before)(const SectionModel& model, std::uint32_t a, std::uint32_t b);
};
// The first is TensorFlow Lite's planner: those that live throughout, then the largest, then the earliest.
std::span<const GreedyRule> greedy_rules();

std::vector<std::uint32_t> order_by(const SectionModel& model, const GreedyRule& rule);

struct GreedyPacking {
  std::vector<std::uint64_t> offsets = {};  // by box
  std::uint64_t height = UINT64_MAX;        // of boxes and obstacles; UINT64_MAX: given up
};
// Bytes that no packing goes beyond: sums stay in 64 bits.
inline constexpr std::uint64_t kHighestPacking = std::uint64_t{1} << 62;

// Gives up as soon as something ends above `most`, in units, which in bytes is at most kHighestPacking; or
// when `rule` is due. `index` is the model's; it is cleared first.
GreedyPacking pack_in_order(const SectionModel& model, ArenaIndex& index,
                            std::span<const std::uint32_t> order, Fit fit, std::uint64_t most,
                            const StopRule& rule = {});

// Squeaky wheel (Joslin and Clements 1999): boxes that end above `target` go earlier next time. Goes on from
// `order`, whose packing has `height`; stops at `target`, after `rounds` rounds, or when `rule` is due.
// Returns the best that is lower, or nothing (height UINT64_MAX).
GreedyPacking squeaky_wheel(const SectionModel& model, ArenaIndex& index, std::vector<std::uint32_t> order,
                            Fit fit, std::uint64_t height, std::uint64_t target, std::uint64_t rounds,
                            std::uint64_t seed, const StopRule& rule);

}  // namespace loadline
