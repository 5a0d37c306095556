// A folder of .npy files (exporters/npy_header.h), one for each tensor, named by core/graph/npy_names.h.
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/graph/names/file_names.h"
#include "core/io/file_system.h"
#include "exporters/common.h"
#include "exporters/formats/formats_2.h"
#include "exporters/formats/npy_header.h"

#include <algorithm>
#include <filesystem>
#include <set>

namespace loadline {
namespace {

namespace fs = std::filesystem;

// All files are open until the last is written.
constexpr std::size_t kMostFiles = 900;

struct Array {
  std::string file;
  Slot slot;
};

std::uint64_t array_unit(const ExportOptions& options) {
  check_alignment(options.alignment);
  if (options.alignment > kMostNpyUnit)
    throw Error(ErrorCode::usage, "an alignment of {}: numpy reads headers that pad to {} at most",
                options.alignment, kMostNpyUnit);
  return std::max(options.alignment, kNpyUnit);
}

// In the order in which an importer lists the folder.
std::vector<Array> arrays_of(const MetaGraph& graph, const ExportOptions& options) {
  std::vector<Array> arrays;
  for (Slot& slot : output_slots(graph, options)) {
    check_npy_dtype(slot);
    auto file = npy_file_name(slot.name.view());
    if (!file)
      throw Error(ErrorCode::unsupported, {.tensor = slot.name},
                  "its name has {} bytes: no file name holds it", slot.name.size());
    arrays.push_back({std::move(*file), std::move(slot)});
  }
  if (arrays.size() > kMostFiles)
    throw Error(ErrorCode::limit, "{} tensors, a folder of .npy files holds at most {}: npz holds any number",
                arrays.size(), kMostFiles)
        .with({"to", "npz"});
  std::ranges::sort(arrays, [](const Array& a, const Array& b) { return natural_less(a.file, b.file); });
  return arrays;
}

// Every array in the folder would be opened as one of this model.
void refuse_others(const std::string& folder, const std::vector<Array>& arrays) {
  if (!is_folder(folder)) return;
  std::set<std::string_view> written;
  for (const Array& array : arrays) written.insert(array.file);
  std::error_code failure;
  for (fs::directory_iterator at(folder, failure), end; !failure && at != end; at.increment(failure)) {
    const std::string name = at->path().filename().string();
    if (name.ends_with(kNpyExtension) && !name.starts_with('.') && !written.contains(name))
      throw Error(ErrorCode::usage, {.file = at->path().string()},
                  "is an array of another model; write to another folder");
  }
  if (failure) throw system_error(folder, "list the folder", failure.value());
}

}  // namespace

Layout npy_layout(const MetaGraph& graph, const ExportOptions& options, const std::string& out) {
  const std::uint64_t unit = array_unit(options);
  std::vector<Array> arrays = arrays_of(graph, options);
  refuse_others(out, arrays);
  Layout layout;
  layout.result.format = "npy";
  for (Array& array : arrays) {
    LayoutFile file;
    file.path = (fs::path(out) / array.file).string();
    file.header = npy_header(array.slot, unit);
    array.slot.offset = file.header.size();
    file.bytes = array.slot.offset + array.slot.bytes;
    const FileId id{static_cast<std::uint32_t>(layout.files.size())};
    layout.result.files.push_back({file.path, file.bytes});
    add_result(layout.result, id, array.slot);
    file.slots.push_back(std::move(array.slot));
    layout.files.push_back(std::move(file));
  }
  add_logical(graph, layout.result);
  return layout;
}

}  // namespace loadline
