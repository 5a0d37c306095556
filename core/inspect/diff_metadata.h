// What differs between the metadata of two models.
#pragma once

#include "core/base/tasks.h"
#include "core/graph/meta_graph.h"
#include "core/io/source_file.h"

#include <optional>
#include <string>
#include <vector>

namespace loadline {

// One key that is in one model only, or whose values differ. Values are as a person writes them, not escaped:
// 42, "text", an array by its length and the first element that differs.
struct MetadataDifference {
  std::string key;  // for a setting of config.json: "config.json: rope_scaling.factor"
  std::optional<std::string> a, b;
};

// A model's metadata, and the file that its arrays lie in if that is none of the model's.
struct MetadataSource {
  MetadataSource(const MetaGraph& model, const SourceFile* header_file = nullptr)
      : graph(model), header(header_file) {}
  const MetaGraph& graph;
  const SourceFile* header;
};

// In A's order, then what only B has. config.json is compared setting by setting if it is JSON with at most
// kMostConfigDepth levels, else as a text. Arrays that stayed in their files are read and compared element by
// element. Throws Error{io | malformed | cancelled}.
std::vector<MetadataDifference> diff_metadata(const MetadataSource& a, const MetadataSource& b,
                                              Progress& progress);

inline constexpr int kMostConfigDepth = 64;

}  // namespace loadline
