// Reads ExecuTorch tensor files (.ptd).
#pragma once

#include "importers/importer.h"

namespace loadline {

Match sniff_ptd(std::span<const std::byte> head, std::string_view path);
MetaGraph read_ptd(const Source& source);
MetaGraph read_ptd_file(const SourceFile& file);

}  // namespace loadline
