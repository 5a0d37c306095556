// What in a model's files makes loading dearer than it need be: alignment, order, duplicates, holes.
#pragma once

#include "core/base/progress.h"
#include "core/base/remedy.h"
#include "core/io/storage_reader.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace loadline {

struct Finding {
  std::string_view id;  // "alignment", ...: stable, for scripts
  Severity severity = Severity::info;
  std::string text = {};              // what is so, with counts
  std::string cost = {};              // what that costs whoever loads the model
  std::string remedy = {};            // what mends it, in words
  std::vector<Remedy> settings = {};  // of the conversion, or the load, that does so; empty where none does
  std::uint64_t count = 0;            // tensors, files or steps concerned
  std::uint64_t bytes = 0;            // that are read, copied or stored in vain
  std::optional<TensorId> example = {};
  std::vector<std::string> files = {};  // where files are concerned
};

// Findings, the gravest first; none for a model whose files are in order. Duplicates are found by
// content: of storages of one size some places are read, and what is alike there is read whole, unless that
// is more than 4 GiB: then the finding says that samples alone speak for it. All else comes from the graph. A
// model without files has no findings. Throws Error{io | cancelled}.
std::vector<Finding> diagnose(const StorageReader& reader, Progress& progress);

// Weight files of the model's kind beside a sharded model that belong to none of its shards.
std::vector<std::string> unclaimed_files(const MetaGraph& graph);

}  // namespace loadline
