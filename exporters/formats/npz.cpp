// npz (numpy 2.x: numpy/lib/_format_impl.py): a zip archive of .npy members, stored.
// Members are padded so that the numbers are aligned in the file.
#include "core/base/error.h"
#include "core/base/text.h"
#include "exporters/common.h"
#include "exporters/formats/formats.h"
#include "exporters/formats/formats_2.h"
#include "exporters/formats/npy_header.h"

namespace loadline {
namespace {

constexpr std::uint64_t kDefaultAlignment = 64;

}  // namespace

bool npz_supports(DType dtype) { return !dtype_info(dtype).npy.empty(); }

bool npz_carries(const MetaGraph&, const MetaEntry&) { return false; }

Layout npz_layout(const MetaGraph& graph, const ExportOptions& options, const std::string& out) {
  ZipLayout zip(zip_alignment(options, kDefaultAlignment));
  for (Slot& slot : output_slots(graph, options)) {
    check_npy_dtype(slot);
    if (!is_valid_utf8(slot.name))
      throw Error(ErrorCode::unsupported, {.tensor = slot.name}, "its name is not UTF-8 text");
    const std::string member = slot.name.str() + ".npy";
    std::vector<std::byte> header = npy_header(slot, kNpyUnit);
    zip.add(member, std::move(header), std::move(slot));
  }
  return zip.layout(graph, "npz", out);
}

}  // namespace loadline
