// Finds properties of a model's files that make loading cost more than necessary: alignment, order,
// duplicates, holes.
#pragma once

#include "core/base/error.h"
#include "core/base/progress.h"
#include "core/io/graph_reader.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::inspect {

struct Finding {
  std::string_view id;  // "alignment", ...: stable, for scripts
  graph::Severity severity = graph::Severity::info;
  std::string text = {};              // the fact, with counts
  std::string cost = {};              // its cost for a loader
  std::string remedy = {};            // how to fix it, in words
  std::vector<Remedy> settings = {};  // options of a conversion or a load that fix it; empty if none does
  std::uint64_t count = 0;            // affected tensors, files or steps
  std::uint64_t bytes = 0;            // bytes that are read, copied or stored needlessly
  std::optional<graph::TensorId> example = {};
  std::vector<std::string> files = {};  // affected files, for findings about files
};

// Whether this model can be converted with these options: advice that fails is not given.
using CanConvert = std::function<bool(const std::vector<Remedy>& settings)>;

// The findings, most severe first; none if the files are in order or the model has no files. Duplicates are
// found by content: storages of equal size are compared at sample positions, and those that agree are read
// whole; holes of sparse files are not read. If that would read more than 4 GiB, the finding says that it
// rests on samples. All other findings come from the graph alone. Throws Error{io | canceled}.
std::vector<Finding> diagnose(const io::StorageReader& reader, const CanConvert& can_convert,
                              Progress& progress);

// Weight files of the model's format in a sharded model's folder that are not among its shards.
std::vector<std::string> unclaimed_files(const graph::MetaGraph& graph);

}  // namespace loadline::inspect
