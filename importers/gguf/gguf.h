// Parses one GGUF file: its key-values and tensors. A model may consist of several such files.
#pragma once

#include "core/graph/meta_graph.h"
#include "core/io/source_file.h"

#include <optional>

namespace loadline {

// The split.* key-values of one part of a split set.
struct GgufSplit {
  std::uint64_t number = 0;  // from 0
  std::uint64_t count = 0;
  std::optional<std::uint64_t> tensors;  // total of all parts
};

struct GgufFile {
  MetaGraph graph;  // this file only; FileId{0} is the file
  std::optional<GgufSplit> split;
};

// Throws Error naming the file and the byte.
GgufFile read_gguf_file(const SourceFile& file);

}  // namespace loadline
