// What a conversion would do, worked out without reading or writing weights.
#pragma once

#include "exporters/exporter.h"
#include "exporters/writer/write_layout.h"

#include <cstdint>
#include <string>
#include <vector>

namespace loadline {

// Tensors of one stored type that are written as one type.
struct TypeChange {
  DType from = DType::opaque, to = DType::opaque;
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
Preflight preflight(const MetaGraph& graph, const Exporter& exporter, const ExportOptions& options,
                    const std::string& out);

}  // namespace loadline
