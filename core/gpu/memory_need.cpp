// Compares the memory that a plan holds at once with the available memory.
#include "core/gpu/memory_need.h"

#include "core/base/checked.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/plan/space_sum.h"

#include <algorithm>

#include <fmt/format.h>

namespace loadline::gpu {
namespace {

void require(std::uint64_t need, std::uint64_t there, std::string_view what) {
  if (need <= there) return;
  throw Error(ErrorCode::no_fit, "does not fit: needs {} ({} bytes) of {}, {} ({} bytes) are available",
              format_bytes(need), need, what, format_bytes(there), there);
}

}  // namespace

MemoryNeeds padded_needs(const Plan& plan, std::uint64_t alignment, std::uint64_t staging) {
  PerSpace<std::uint64_t> live = {};
  MemoryNeeds needs = {};
  const auto note = [&] {
    for (unsigned mask = 0; mask < needs.size(); ++mask)
      needs[mask] = std::max(needs[mask], sum_over(live, mask));
  };
  live[index(Space::staging)] = staging;
  note();
  for (const Step& step : plan.steps) {
    if (step.verb == Verb::copy) continue;
    const Block& block = plan.block(step.block);
    const std::uint64_t bytes = align_up(block.bytes, alignment);
    if (step.verb == Verb::alloc) {
      live[index(block.space)] += bytes;
      note();
    } else {
      live[index(block.space)] -= bytes;
    }
  }
  return needs;
}

MemoryNeeds needs_of(const Timeline& timeline) {
  MemoryNeeds needs = {};
  for (unsigned mask = 1; mask < needs.size(); ++mask) needs[mask] = peak_over(timeline, mask).bytes;
  return needs;
}

void require_fit(const MemoryNeeds& needs, const MemorySupply& supply, std::string_view device) {
  constexpr unsigned kDevice = space_bit(Space::device), kStaging = space_bit(Space::staging),
                     kHost = space_bit(Space::host);
  if (supply.device_is_system) {
    if (supply.system)
      require(needs[kDevice | kStaging | kHost], *supply.system,
              fmt::format("system memory ({} has no other)", device));
    return;
  }
  if (supply.same_heap) {
    require(needs[kDevice | kStaging], supply.device,
            fmt::format("memory that {} shares with the host", device));
  } else {
    require(needs[kDevice], supply.device, fmt::format("device memory on {}", device));
    require(needs[kStaging], supply.staging, fmt::format("transfer memory for {}", device));
  }
  if (supply.system) require(needs[kHost | kStaging], *supply.system, "system memory");
}

}  // namespace loadline::gpu
