// Reads numpy's .npy arrays and .npz archives of them.
#pragma once

#include "importers/importer.h"

namespace loadline {

Match sniff_npy(std::span<const std::byte> head, std::string_view path);
// One array, named as its file.
MetaGraph read_npy(const Source& source);

Match sniff_npz(std::span<const std::byte> head, std::string_view path);
// An array per member, named as the member without ".npy".
MetaGraph read_npz(const Source& source);

}  // namespace loadline
