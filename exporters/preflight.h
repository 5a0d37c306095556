// Lays a conversion out without writing: refusals, the Layout, what it leaves out, types before and after.
#pragma once

#include "exporters/convert.h"
#include "exporters/exporter.h"
#include "exporters/writer/write_layout.h"

#include <cstdint>
#include <string>
#include <vector>

namespace loadline::exporters {

// --- Lists the information of a model that its conversion loses.

// Sentences for a person, without a full stop, names escaped; empty if nothing is lost. They report tied
// tensors written under one name only, metadata that the format cannot hold, integers whose scale lies
// outside the tensor, and tensors that cannot be cast to `options.outtype`. `held_keys`: metadata that the
// output has in another form.
std::vector<std::string> left_out(const graph::MetaGraph& graph, const Exporter& exporter,
                                  const ExportOptions& options,
                                  const std::vector<std::string>& held_keys = {});

// --- What a conversion would do, worked out without reading or writing weights.

// Tensors of one stored type that are written as one type.
struct TypeChange {
  graph::DType from = graph::DType::opaque, to = graph::DType::opaque;
  bool unpacked = false;      // packed weights become tensors of their own
  std::uint64_t tensors = 0;  // of the output
  std::uint64_t bytes = 0;    // in the output
};

struct Preflight {
  Layout layout;
  std::vector<TypeChange> changes;    // most bytes first
  std::vector<std::string> left_out;  // left_out()
};

// What a person should know before the conversion: what it leaves out, and the notes of its layout.
std::vector<std::string> remarks(const Preflight& planned);

// Throws as convert_model() would before it writes, but for targets and room, which check_output() checks.
Preflight preflight(const Conversion& conversion);

// --- The tensors of a new file by type, and by kind: what a person wants to see before a conversion.

struct TypeShare {
  graph::DType type = graph::DType::opaque;
  std::uint64_t tensors = 0;
  std::uint64_t weights = 0;  // numbers; of types without a size, bytes
  std::uint64_t bytes = 0;
};

// Tensors whose names differ in numbers alone, and that have the same types.
struct TensorGroup {
  std::string pattern;                       // "blk.*.attn_v.weight"
  graph::DType from = graph::DType::opaque;  // in the source
  TypeShare share = {};                      // in the output
  std::vector<std::uint64_t>
      layers;         // first numbers of the names, in increasing order; empty if they have none
  bool alone = true;  // the only group with this pattern
};

// Most bytes first.
std::vector<TypeShare> type_shares(const Layout& layout);
// In the order of the file; groups of one pattern stand together.
std::vector<TensorGroup> tensor_groups(const graph::MetaGraph& graph, const Layout& layout);
// 0 for no weights.
double bits_per_weight(std::uint64_t bytes, std::uint64_t weights);
// Whether any tensor of the output is quantized, and whether the conversion quantizes one.
bool has_blocks(const Layout& layout);
bool quantizes(const Layout& layout);

}  // namespace loadline::exporters
