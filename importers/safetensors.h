// Reads the header of one .safetensors file.
#pragma once

#include "importers/importer.h"

namespace loadline {

// One file's tensors, its __metadata__ and its notes; no siblings are looked at.
MetaGraph read_safetensors_file(const SourceFile& file);

Match sniff_safetensors(std::span<const std::byte> head, std::string_view path);
// A single file, with the config.json beside it as metadata.
MetaGraph read_safetensors(const Source& source);

}  // namespace loadline
