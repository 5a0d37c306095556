// Opens the shards of a sharded model in parallel.
#pragma once

#include "core/graph/name_index.h"
#include "importers/importer.h"

#include <cstddef>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace loadline {

// The result for one shard: a graph, an error, or neither if there is no such file.
struct OpenedShard {
  std::optional<MetaGraph> graph = {};
  NameIndex names = NameIndex();  // the positions of its tensors
  std::exception_ptr error = {};
};

// Calls `take` once for each of `names`, in their order, as soon as that shard and all before it are open.
// Calls never overlap, but may come from different threads.
void open_shards(const Source& source, const std::vector<std::string>& names,
                 const std::function<void(OpenedShard shard)>& take);

// The number of threads worth starting for that many shards.
std::size_t threads_for_shards(std::size_t shards);

// The shard names that an index most likely lists, guessed from the first name in it
// ("model-00001-of-00163.safetensors"). Empty if that name has no such number.
std::vector<std::string> likely_shards(const SourceFile& index);

}  // namespace loadline
