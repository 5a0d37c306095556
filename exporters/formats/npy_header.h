// The header of a .npy array, for files and members of archives.
#pragma once

#include "exporters/exporter.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace loadline {

// Of the numbers, as numpy itself writes.
inline constexpr std::uint64_t kNpyUnit = 64;
// numpy refuses headers of more than 10,000 bytes.
inline constexpr std::uint64_t kMostNpyUnit = 8192;

// Padded so that the numbers begin at a multiple of `unit`, a power of two from kNpyUnit to kMostNpyUnit.
std::vector<std::byte> npy_header(const Slot& slot, std::uint64_t unit);

// Throws Error{unsupported} for types that numpy has not.
void check_npy_dtype(const Slot& slot);

}  // namespace loadline
