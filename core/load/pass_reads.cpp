// Adds up what stays mapped, or on disk.
#include "core/load/pass_reads.h"

#include "core/base/checked.h"
#include "core/load/load_units.h"
#include "core/load/shared_embedding.h"

#include <algorithm>

namespace loadline {

WeightReads::WeightReads(const MetaGraph& graph, const LoadRequest& request)
    : graph_(graph),
      tokens_(request.batch * request.sequence),  // below 2^48
      owners_(first_owner(graph)),
      shared_(shared_embedding(graph)) {}

std::uint64_t WeightReads::of(StorageId id) const {
  constexpr std::uint64_t kAround = 64 << 10;
  const std::uint64_t bytes = graph_.storage(id).bytes;
  const Tensor& tensor = graph_.tensor(*owners_[index(id)]);
  const std::uint64_t rows = tensor.shape.empty() ? 0 : tensor.shape[0];
  if (tokens_ == 0 || rows == 0 || id == shared_ || phase_of(tensor.name) != Phase::embedding) return bytes;
  return std::min(bytes, checked_mul(tokens_, std::max(bytes / rows, kAround)).value_or(bytes));
}

PassReads pass_reads(const MetaGraph& graph, const LoadRequest& request, const Placement& placement,
                     const Plan& plan, const Timeline& timeline) {
  PassReads reads;
  if (!uses_weights(request)) return reads;
  const WeightReads weights(graph, request);
  std::vector<bool> mapped(graph.storages.size(), false);
  for (std::size_t i = 0; i < plan.blocks.size(); ++i) {
    const Block& block = plan.blocks[i];
    const bool kept = timeline.lifetimes[i].to_step == kNever && block.storage.has_value();
    if (block.space != Space::page_cache || block.use != BlockUse::storage || !kept) continue;
    mapped[index(*block.storage)] = true;
    reads.mapped += std::min(block.bytes, weights.of(*block.storage));
  }
  for (const StorageId id : used_storages(graph))
    if (placement.of(id) == Home::disk && !mapped[index(id)]) reads.disk += weights.of(id);
  return reads;
}

}  // namespace loadline
