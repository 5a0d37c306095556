// Reads files of torch.save before 1.6: a stream of pickles, then raw storages.
#pragma once

#include "importers/importer.h"

namespace loadline {

// One file's tensors, metadata and notes; no siblings are looked at.
MetaGraph read_torch_legacy_file(const SourceFile& file);

Match sniff_torch_legacy(std::span<const std::byte> head, std::string_view path);
// A single file, with the config.json beside it as metadata.
MetaGraph read_torch_legacy(const Source& source);

}  // namespace loadline
