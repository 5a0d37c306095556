// Reads the header of one .safetensors file.
#pragma once

#include "core/graph/name_index.h"
#include "importers/importer.h"

namespace loadline {

// One file's tensors, its __metadata__ and its notes; no siblings are looked at. `names`, where asked for,
// gets the tensors' positions.
MetaGraph read_safetensors_file(const SourceFile& file, NameIndex* names = nullptr);

Match sniff_safetensors(std::span<const std::byte> head, std::string_view path);
// A single file, with the config.json beside it as metadata.
MetaGraph read_safetensors(const Source& source);

}  // namespace loadline
