// Reads ExecuTorch programs (.pte).
#pragma once

#include "importers/importer.h"

namespace loadline {

Match sniff_pte(std::span<const std::byte> head, std::string_view path);
// The program's constants, initial values of mutable tensors, named data and delegates' blobs; external
// tensors from the .ptd of the same name beside it, or noted as missing.
MetaGraph read_pte(const Source& source);

}  // namespace loadline
