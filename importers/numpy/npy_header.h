// The header of a .npy array: a Python dict literal, parsed and never evaluated.
#pragma once

#include "core/base/error.h"
#include "core/graph/dtype_and_shape.h"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace loadline {

struct NpyHeader {
  DType dtype = DType::opaque;
  std::string descr;             // "<f4"; "a record" for a list of fields
  std::uint64_t item_bytes = 0;  // of one element; 0 if the header does not say
  std::uint8_t swapped = 0;      // bytes of each big-endian number; 0 if nothing must be swapped
  std::vector<std::uint64_t> shape;
  bool fortran_order = false;
  std::uint64_t data = 0;  // offset of the first element, counted from the magic
};

// Reads the magic and the header of an array. `take(n)` returns the next n bytes. Throws Error at `place` if
// they are not an array of versions 1.0 to 3.0, and Error{limit} for a header above kMostNpyHeader bytes.
NpyHeader read_npy_header(const std::function<std::string(std::uint64_t)>& take, const ErrorPlace& place);
inline constexpr std::uint64_t kMostNpyHeader = 1 << 20;

inline constexpr std::string_view kNpyMagic = "\x93NUMPY";

}  // namespace loadline
