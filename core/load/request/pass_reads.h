// What a forward pass reads of each weight, and what of that is not in memory of its own.
#pragma once

#include "core/load/request/placement.h"
#include "core/load/request/request.h"
#include "core/plan/timeline.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace loadline {

// A pass reads all of a weight, but of an embedding that is not also the head only the rows of its tokens,
// with the pages that the kernel maps around them. `whole`: the pass brings weights to the device, whole
// ones.
class WeightReads {
 public:
  WeightReads(const MetaGraph& graph, const LoadRequest& request, const Placement& placement, bool whole);
  std::uint64_t of(StorageId id) const;

 private:
  const MetaGraph& graph_;
  const Placement& placement_;
  const std::uint64_t tokens_;  // 0: unknown, or all rows
  const std::vector<std::optional<TensorId>> owners_;
  const std::optional<StorageId> shared_;
};

// Weights that every token reads from files: those that the plan leaves mapped, and those on disk. Bytes.
struct PassReads {
  std::uint64_t mapped = 0;
  std::uint64_t disk = 0;
  std::uint64_t all() const { return mapped + disk; }
};
// Zero if nothing follows the load. `timeline` is the plan's.
PassReads pass_reads(const MetaGraph& graph, const LoadRequest& request, const Placement& placement,
                     bool whole, const Plan& plan, const Timeline& timeline);

}  // namespace loadline
