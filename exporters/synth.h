// Makes a checkpoint from shapes alone: a sparse one of full size without disk blocks, or one with seeded
// random weights.
#pragma once

#include "core/base/progress.h"
#include "exporters/writer/write_layout.h"

#include <cstdint>
#include <optional>
#include <string>

namespace loadline::exporters {

struct SynthOptions {
  std::optional<std::uint64_t> seed;  // nothing = sparse: bytes are holes that read as zero
  std::uint64_t max_shard_bytes = 0;
  bool overwrite = false;
  // The exporter: safetensors, which gives a Hugging Face model folder, or torch or gguf, which give a file.
  std::string to = "safetensors";
};

// `shapes` is a graph without files (core/forward/model/known_models.h). A GGUF file has llama.cpp's names
// and keys if the family has a map; vectors that follow from the configuration are written even to a sparse
// file. Random floating values are about normally distributed around 0 (norm weights around 1) with a
// standard deviation of about 0.02. The same seed and shapes give the same bytes on every machine. Throws
// Error{usage} for another exporter.
WriteReport synthesize(const graph::MetaGraph& shapes, const std::string& out, const SynthOptions& options,
                       Progress& progress);

}  // namespace loadline::exporters
