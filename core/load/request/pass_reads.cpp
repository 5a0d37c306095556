// Adds up what stays mapped, or on disk.
#include "core/load/request/pass_reads.h"

#include "core/base/checked_arithmetic.h"
#include "core/load/request/casts.h"
#include "core/load/request/model_parts.h"
#include "core/load/request/shared_embedding.h"

#include <algorithm>

namespace loadline {

WeightReads::WeightReads(const MetaGraph& graph, const LoadRequest& request, const Placement& placement,
                         bool whole)
    : graph_(graph),
      placement_(placement),
      tokens_(whole ? 0 : request.batch * request.sequence),  // below 2^48
      owners_(first_owner(graph)),
      shared_(shared_embedding(graph)) {}

std::uint64_t WeightReads::of(StorageId id) const {
  constexpr std::uint64_t kAround = 64 << 10;
  const std::uint64_t bytes = graph_.storage(id).bytes;
  const Tensor& tensor = graph_.tensor(*owners_[index(id)]);
  const std::uint64_t rows = tensor.shape.empty() ? 0 : tensor.shape[0];
  // a shared embedding is also the head, unless the head's copy is on the device
  const bool head = id == shared_ && !placement_.has_twin(id);
  if (tokens_ == 0 || rows == 0 || head || phase_of(tensor.name) != Phase::embedding) return bytes;
  return std::min(bytes, checked_mul(tokens_, std::max(bytes / rows, kAround)).value_or(bytes));
}

PassReads pass_reads(const MetaGraph& graph, const LoadRequest& request, const Placement& placement,
                     bool whole, const Plan& plan, const Timeline& timeline) {
  PassReads reads;
  if (!uses_weights(request)) return reads;
  const WeightReads weights(graph, request, placement, whole);
  std::vector<bool> in_memory(graph.storages.size(), false);
  for (std::size_t i = 0; i < plan.blocks.size(); ++i) {
    const Block& block = plan.blocks[i];
    if (timeline.lifetimes[i].to_step != kNever || !block.storage) continue;
    in_memory[index(*block.storage)] = true;
    if (block.space == Space::page_cache && block.use == BlockUse::storage)
      reads.mapped += std::min(block.bytes, weights.of(*block.storage));
  }
  const std::vector<std::uint64_t> landed = loaded_bytes(graph, request.cast);
  for (const StorageId id : used_storages(graph))
    if (placement.of(id) == Home::disk && !in_memory[index(id)])
      reads.disk = add_loaded(reads.disk, landed[index(id)]);
  return reads;
}

}  // namespace loadline
