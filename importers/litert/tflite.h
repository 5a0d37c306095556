// Reads LiteRT (TensorFlow Lite) models.
#pragma once

#include "importers/importer.h"

namespace loadline {

Match sniff_tflite(std::span<const std::byte> head, std::string_view path);
// Tensors with stored data, and the first subgraph's operators.
MetaGraph read_tflite(const Source& source);

}  // namespace loadline
