// npy 1.0 (numpy 2.x: numpy/lib/_format_impl.py).
//
//   "\x93NUMPY" 1 0 | u16 length | {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } | numbers
#include "exporters/formats/npy_header.h"

#include "core/base/checked_arithmetic.h"
#include "core/base/error.h"
#include "exporters/common.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace loadline {

std::vector<std::byte> npy_header(const Slot& slot, std::uint64_t unit) {
  constexpr std::size_t kMagic = 10;
  const char* const comma = slot.shape.size() == 1 ? "," : "";
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}",
                                 dtype_info(slot.dtype).npy, fmt::join(slot.shape, ", "), comma);
  text.resize(static_cast<std::size_t>(align_up(kMagic + text.size() + 1, unit)) - kMagic - 1, ' ');
  text += '\n';
  std::vector<std::byte> bytes;
  append_bytes(bytes, std::string_view("\x93NUMPY\1\0", 8));
  bytes.push_back(static_cast<std::byte>(text.size() & 0xFF));
  bytes.push_back(static_cast<std::byte>(text.size() >> 8));
  append_bytes(bytes, text);
  return bytes;
}

void check_npy_dtype(const Slot& slot) {
  if (dtype_info(slot.dtype).npy.empty())
    throw Error(ErrorCode::unsupported, {.tensor = slot.name}, "numpy has no dtype {}",
                dtype_info(slot.dtype).name)
        .with({"outtype", "f32"});
}

}  // namespace loadline
