// The first greedy rule, component by component.
#include "core/packing/greedy_by_size.h"

#include "core/packing/greedy.h"
#include "core/packing/normal_form.h"
#include "core/packing/validator.h"

#include <algorithm>

namespace loadline {
namespace {

std::uint64_t height_in(const Problem& problem, std::uint32_t arena) {
  const NormalForm form = normal_form(problem, arena);
  const GreedyRule& rule = greedy_rules().front();
  std::uint64_t height = 0;
  for (const PackingComponent& component : form.components) {
    ArenaIndex index(component.model);
    const auto packing = pack_in_order(component.model, index, order_by(component.model, rule), rule.fit);
    if (packing.height == UINT64_MAX) return UINT64_MAX;
    height = std::max(height, packing.height * component.unit);
  }
  return height;
}

}  // namespace

std::uint64_t greedy_by_size_height(const Problem& problem) {
  check_problem(problem);
  std::uint64_t height = 0;
  std::uint32_t arenas = 1;
  for (const Buffer& buffer : problem.buffers) {
    arenas = std::max(arenas, buffer.arena + 1);
    // pins where nobody else is alive are in no component
    if (buffer.offset && buffer.size > 0 && alive_together(buffer, buffer))
      height = std::max(height, *buffer.offset + buffer.size);
  }
  for (std::uint32_t arena = 0; arena < arenas; ++arena) height = std::max(height, height_in(problem, arena));
  return height;
}

}  // namespace loadline
