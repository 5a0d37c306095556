// One GGUF file, parsed: its key-values and tensors, not yet a model.
#pragma once

#include "core/graph/meta_graph.h"
#include "core/io/source_file.h"

#include <optional>

namespace loadline {

// What the parts of a split set say of themselves.
struct GgufSplit {
  std::uint64_t number = 0;  // from 0
  std::uint64_t count = 0;
  std::optional<std::uint64_t> tensors;  // in all parts together
};

struct GgufFile {
  MetaGraph graph;  // of this file alone; FileId{0} is the file
  std::optional<GgufSplit> split;
};

// Throws Error naming the file and the byte.
GgufFile read_gguf_file(const SourceFile& file);

}  // namespace loadline
