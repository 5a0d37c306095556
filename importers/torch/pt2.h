// Reads archives of torch.export.save: weights and constants, never code.
#pragma once

#include "importers/importer.h"

namespace loadline {

Match sniff_pt2(std::span<const std::byte> head, std::string_view path);
MetaGraph read_pt2(const Source& source);

}  // namespace loadline
