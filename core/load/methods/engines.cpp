// Serving engines: parameters on the device are filled from mapped files, then fused groups are laid out
// anew.
#include "core/load/methods/expert_groups.h"
#include "core/load/methods/programs.h"

#include <utility>

namespace loadline {
namespace {

// vLLM and SGLang copy each tensor to its place in a parameter that holds all experts of a layer, and replace
// that parameter after reading by one in the layout of their kernels. `together`: all old parameters live
// until the last new one is made.
Plan load_and_repack(MethodBuilder& b, bool together) {
  const std::vector<ExpertGroup> groups = expert_groups(b.graph(), b.order());
  struct Place {
    BlockId block{};
    std::uint64_t at = 0;
  };
  std::vector<Place> places(b.graph().storages.size());
  std::vector<bool> grouped(b.graph().storages.size(), false);
  std::vector<BlockId> fused;
  const auto make = [&](const ExpertGroup& group, BlockUse use) {
    return alloc(
        b.plan(),
        {.space = Space::device, .bytes = group.bytes, .use = use, .storage = {}, .label = group.label});
  };
  for (const ExpertGroup& group : groups) {
    fused.push_back(make(group, BlockUse::temporary));
    std::uint64_t at = 0;
    for (const StorageId id : group.storages) {
      places[index(id)] = {fused.back(), at};
      grouped[index(id)] = true;
      at += b.bytes(id);
    }
  }
  for (const StorageId id : b.order())
    if (!grouped[index(id)]) places[index(id)] = {b.make(Space::device, id), 0};
  mark(b.plan(), "empty model on the device");
  for (const StorageOrder& shard : b.by_shard()) {
    std::vector<BlockId> mapped;
    for (const StorageId id : shard) {
      mapped.push_back(b.load(Space::page_cache, id));
      copy(b.plan(), places[index(id)].block, places[index(id)].at, mapped.back(), 0, b.bytes(id));
    }
    b.drop_all(mapped);
  }
  mark(b.plan(), "files read");
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const BlockId made = make(groups[g], BlockUse::storage);
    b.move(made, fused[g]);
    if (!together) b.drop(fused[g]);
  }
  if (together) b.drop_all(fused);
  return b.finish();
}

}  // namespace

Plan load_engine_repack(MethodBuilder& b) { return load_and_repack(b, false); }

Plan load_engine_repack_all(MethodBuilder& b) { return load_and_repack(b, true); }

}  // namespace loadline
