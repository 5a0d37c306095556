// The header of a .npy array: a Python dict literal, parsed and never evaluated.
#pragma once

#include "core/base/error.h"
#include "core/graph/dtype.h"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace loadline {

struct NpyHeader {
  DType dtype = DType::opaque;
  std::string descr;             // "<f4"; "a record" for a list of fields
  std::uint64_t item_bytes = 0;  // of one element; 0 where the header does not say
  std::uint8_t swapped = 0;      // width of big-endian numbers; 0 for others
  std::vector<std::uint64_t> shape;
  bool fortran_order = false;
  std::uint64_t data = 0;  // where the array begins, from the magic on
};

// Reads an array's front; `take` gives its next bytes. Throws Error at `place` for what is no array of
// versions 1.0 to 3.0, Error{limit} for a header above kMostNpyHeader bytes.
NpyHeader read_npy_header(const std::function<std::string(std::uint64_t)>& take, const ErrorPlace& place);
inline constexpr std::uint64_t kMostNpyHeader = 1 << 20;

inline constexpr std::string_view kNpyMagic = "\x93NUMPY";

}  // namespace loadline
