// Makes a checkpoint from shapes alone: a sparse one of full size without disk blocks, or one with seeded
// random weights.
#pragma once

#include "core/base/progress.h"
#include "exporters/write_layout.h"

#include <cstdint>
#include <optional>
#include <string>

namespace loadline {

struct SynthOptions {
  std::optional<std::uint64_t> seed;  // nothing = sparse: bytes are holes that read as zero
  std::uint64_t max_shard_bytes = 0;
  bool overwrite = false;
};

// `shapes` is a graph without files (core/forward/config_graph.h). Writes a Hugging Face model folder.
// Random floating values are about normally distributed around 0 (norm weights around 1) with a standard
// deviation of about 0.02. The same seed and shapes give the same bytes on every machine.
WriteReport synthesize(const MetaGraph& shapes, const std::string& folder, const SynthOptions& options,
                       Progress& progress);

}  // namespace loadline
