// Finds the tensors of an ONNX file that are to be stored otherwise.
#pragma once

#include "core/graph/meta_graph.h"
#include "core/io/protobuf_wire.h"
#include "core/io/source_file.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace loadline {

// A range of the source file.
using SourceRange = std::pair<std::uint64_t, std::uint64_t>;

// A TensorProto whose values move.
struct OnnxTensorEdit {
  TensorId tensor{};
  bool outside = false;           // to external data; else into raw_data
  std::vector<SourceRange> kept;  // fields that say something else than where the values are, in their order
};

// A message with changes inside. All bytes of the source that no edit covers stay as they are.
struct OnnxEdit {
  WireField field;
  std::vector<OnnxEdit> inner;  // in the order of the file
  std::optional<OnnxTensorEdit> tensor;
};

// Tensors that hold values of at least so many bytes become external data, as those of onnx's own helper do.
inline constexpr std::uint64_t kLeastOutside = 1024;

// Initialisers of the graph, and of graphs in its operators' attributes, move to external data if they are
// large enough, else into the file. Other tensors move only if they are external data already: operators'
// attributes and training graphs stay as they are. If `inline_weights`, all external data moves into the
// file. `graph` must be what an importer read from `file`. Throws Error{malformed} as WireReader does, and if
// the file has changed.
std::vector<OnnxEdit> find_onnx_edits(const SourceFile& file, const MetaGraph& graph, bool inline_weights);

}  // namespace loadline
