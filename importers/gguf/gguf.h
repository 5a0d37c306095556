// Reads GGUF models: one file, or all parts of a split set.
#pragma once

#include "importers/importer.h"

namespace loadline {

Match sniff_gguf(std::span<const std::byte> head, std::string_view path);
// From any part of a split set the whole set. A missing part is a Note of severity error.
MetaGraph read_gguf(const Source& source);

}  // namespace loadline
