// The first greedy rule, component by component.
#include "core/packing/greedy_by_size.h"

#include "core/packing/greedy.h"
#include "core/packing/normal_form.h"

#include <algorithm>

namespace loadline {
namespace {

std::optional<std::uint64_t> height_in(const Problem& problem, std::uint32_t arena, const StopRule& rule) {
  const NormalForm form = normal_form(problem, arena);
  const GreedyRule& by_size = greedy_rules().front();
  std::uint64_t height = 0;
  for (const PackingComponent& component : form.components) {
    ArenaIndex index(component.model);
    const auto packing = pack_in_order(component.model, index, order_by(component.model, by_size),
                                       by_size.fit, kHighestPacking / component.unit, rule);
    if (packing.height == UINT64_MAX) return std::nullopt;
    height = std::max(height, packing.height * component.unit);
  }
  // pinned buffers without other buffers alive belong to no component
  if (const Buffer* pin = highest_pin(problem, arena)) height = std::max(height, *pin->offset + pin->size);
  return height;
}

}  // namespace

std::vector<std::optional<std::uint64_t>> greedy_by_size_heights(const Problem& problem,
                                                                 const StopRule& rule) {
  check_problem(problem);
  const std::uint32_t arenas = arena_count(problem);
  std::vector<std::optional<std::uint64_t>> heights;
  for (std::uint32_t arena = 0; arena < arenas; ++arena) heights.push_back(height_in(problem, arena, rule));
  return heights;
}

std::optional<std::uint64_t> greedy_by_size_height(const Problem& problem, const StopRule& rule) {
  std::uint64_t most = 0;
  for (const auto& height : greedy_by_size_heights(problem, rule)) {
    if (!height) return std::nullopt;
    most = std::max(most, *height);
  }
  return most;
}

}  // namespace loadline
