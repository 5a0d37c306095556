// Divides a model's storages into shards.
#include "core/load/request/shards.h"

#include <algorithm>

namespace loadline {

std::vector<std::uint32_t> shards_of(const MetaGraph& graph, std::uint64_t most) {
  std::vector<std::uint32_t> shards(graph.storages.size(), 0);
  if (most == 0) {
    const auto without = static_cast<std::uint32_t>(graph.files.size());
    for (std::size_t i = 0; i < shards.size(); ++i)
      shards[i] = std::min(static_cast<std::uint32_t>(index(graph.storages[i].file)), without);
    return shards;
  }
  std::uint32_t shard = 0;  // being filled
  std::uint32_t next = 1;
  std::uint64_t room = most;
  for (const StorageId id : find_order("file").make(graph)) {
    const std::uint64_t bytes = graph.storage(id).bytes;
    if (bytes > most) {
      shards[index(id)] = next++;
      continue;
    }
    if (bytes > room) {
      shard = next++;
      room = most;
    }
    shards[index(id)] = shard;
    room -= bytes;
  }
  return shards;
}

bool is_pickled(const MetaGraph& graph) { return graph.format.starts_with("torch"); }

}  // namespace loadline
