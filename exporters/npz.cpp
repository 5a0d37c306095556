// npz (numpy 2.x: numpy/lib/_format_impl.py): a zip archive of .npy members, stored.
//
//   "\x93NUMPY" 1 0 | u16 length | {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } | numbers
//
// The header is padded so that the numbers begin at a multiple of 64, and the member so that they are aligned
// in the file.
#include "core/base/error.h"
#include "core/base/text.h"
#include "exporters/common.h"
#include "exporters/formats.h"
#include "exporters/zip_layout.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace loadline {
namespace {

constexpr std::uint64_t kDefaultAlignment = 64;

std::vector<std::byte> npy_header(const Slot& slot) {
  const char* const comma = slot.shape.size() == 1 ? "," : "";
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}",
                                 dtype_info(slot.dtype).npy, fmt::join(slot.shape, ", "), comma);
  constexpr std::size_t kMagic = 10;
  text.append(63 - (kMagic + text.size()) % 64, ' ');
  text += '\n';
  std::vector<std::byte> bytes;
  append_bytes(bytes, std::string_view("\x93NUMPY\1\0", 8));
  bytes.push_back(static_cast<std::byte>(text.size() & 0xFF));
  bytes.push_back(static_cast<std::byte>(text.size() >> 8));
  append_bytes(bytes, text);
  return bytes;
}

}  // namespace

bool npz_supports(DType dtype) { return !dtype_info(dtype).npy.empty(); }

bool npz_carries(const MetaGraph&, const MetaEntry&) { return false; }

Layout npz_layout(const MetaGraph& graph, const ExportOptions& options, const std::string& out) {
  ZipLayout zip(zip_alignment(options, kDefaultAlignment));
  for (Slot& slot : output_slots(graph, options)) {
    if (!npz_supports(slot.dtype))
      throw Error(ErrorCode::unsupported, {.tensor = slot.name}, "numpy has no dtype {}",
                  dtype_info(slot.dtype).name)
          .with({"outtype", "f32"});
    if (!is_valid_utf8(slot.name))
      throw Error(ErrorCode::unsupported, {.tensor = slot.name}, "its name is not UTF-8 text");
    const std::string member = slot.name.str() + ".npy";
    std::vector<std::byte> header = npy_header(slot);
    zip.add(member, std::move(header), std::move(slot));
  }
  return zip.layout(graph, "npz", out);
}

}  // namespace loadline
