// One GGUF file, and importance matrices.
#pragma once

#include "core/graph/meta_graph.h"
#include "core/graph/packed/quantization.h"
#include "core/io/source_file.h"

#include <memory>
#include <optional>
#include <string>

namespace loadline::importers {

// --- Parses one GGUF file: its key-values and tensors. A model may consist of several such files.

// The split.* key-values of one part of a split set.
struct GgufSplit {
  std::uint64_t number = 0;  // from 0
  std::uint64_t count = 0;
  std::optional<std::uint64_t> tensors;  // total of all parts
};

struct GgufFile {
  graph::MetaGraph graph;  // this file only; FileId{0} is the file
  std::optional<GgufSplit> split;
};

// Throws Error naming the file and the byte.
GgufFile read_gguf_file(const io::SourceFile& file);

// --- Reads importance matrices of llama.cpp.

// A GGUF file whose general.type is "imatrix", or the binary form that came before it. Throws Error naming
// the file and the byte or the entry; a weight that is negative or not finite is one.
graph::ImportanceMatrix read_importance_matrix(const io::SourceFile& file);
// Throws as above, and Error{io}.
std::shared_ptr<const graph::ImportanceFile> read_importance_file(const std::string& path);

}  // namespace loadline::importers
