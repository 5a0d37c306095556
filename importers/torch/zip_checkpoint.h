// Reads .pt, .pth, .ckpt and pytorch_model.bin: zip archives of torch.save.
#pragma once

#include "importers/importer.h"

namespace loadline {

// One file's tensors, metadata and notes; no siblings are looked at.
MetaGraph read_torch_zip_file(const SourceFile& file);

Match sniff_torch_zip(std::span<const std::byte> head, std::string_view path);
// A single file, with the config.json beside it as metadata.
MetaGraph read_torch_zip(const Source& source);

}  // namespace loadline
