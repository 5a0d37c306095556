// The shards of a sharded model, opened in parallel.
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

// What opening one shard gave: a graph, nothing (no such file), or an error.
struct OpenedShard {
  std::optional<MetaGraph> graph = {};
  NameIndex names = NameIndex();  // the positions of its tensors
  std::exception_ptr error = {};
};

// Calls `take` once for each of `names`, in their order and never twice at a time, as soon as that shard and
// those before it are open.
void open_shards(const Source& source, const std::vector<std::string>& names,
                 const std::function<void(OpenedShard shard)>& take);

// How many threads are worth starting for that many shards.
std::size_t threads_for_shards(std::size_t shards);

// The shards that an index most likely lists, from the first name in it ("model-00001-of-00163.safetensors").
// Empty if names do not count like that.
std::vector<std::string> likely_shards(const SourceFile& index);

}  // namespace loadline
