// numpy arrays: a folder of .npy files, or one .npz.

#include "core/base/checked_arithmetic.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/graph/names/file_names.h"
#include "core/io/file_system.h"
#include "exporters/exporter.h"
#include "exporters/formats/formats.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <set>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace loadline::exporters {

// --- The header of a .npy array, for files and members of archives.

namespace {

// Of the numbers, as numpy itself writes.
inline constexpr std::uint64_t kNpyUnit = 64;
// numpy refuses headers of more than 10,000 bytes.
inline constexpr std::uint64_t kMostNpyUnit = 8192;

// Padded so that the numbers begin at a multiple of `unit`, a power of two from kNpyUnit to kMostNpyUnit.
std::vector<std::byte> npy_header(const Slot& slot, std::uint64_t unit) {
  constexpr std::size_t kMagic = 10;
  const char* const comma = slot.shape.size() == 1 ? "," : "";
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}",
                                 graph::dtype_info(slot.dtype).npy, fmt::join(slot.shape, ", "), comma);
  text.resize(static_cast<std::size_t>(align_up(kMagic + text.size() + 1, unit)) - kMagic - 1, ' ');
  text += '\n';
  std::vector<std::byte> bytes;
  append_bytes(bytes, std::string_view("\x93NUMPY\1\0", 8));
  bytes.push_back(static_cast<std::byte>(text.size() & 0xFF));
  bytes.push_back(static_cast<std::byte>(text.size() >> 8));
  append_bytes(bytes, text);
  return bytes;
}

// Throws Error{unsupported} for types and shapes that numpy has not.
void check_npy_array(const Slot& slot) {
  constexpr std::size_t kMostRank = 64;
  check_rank(slot, kMostRank, "numpy");
  if (graph::dtype_info(slot.dtype).npy.empty()) refuse_dtype(slot, "numpy", graph::DType::f32);
}

// Nothing is left of a model without tensors: no folder, and an archive that no reader tells from others.
std::vector<Slot> array_slots(const graph::MetaGraph& graph, const ExportOptions& options) {
  std::vector<Slot> slots = output_slots(graph, options);
  if (slots.empty())
    throw Error(ErrorCode::unsupported, "the model has no tensors: there would be no array to write");
  for (const Slot& slot : slots) check_npy_array(slot);
  return slots;
}

}  // namespace

// --- A folder of .npy files, one for each tensor, named by core/graph/names/file_names.h.

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
std::vector<Array> arrays_of(std::vector<Slot> slots) {
  std::vector<Array> arrays;
  for (Slot& slot : slots) {
    auto file = graph::npy_file_name(slot.name.view());
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
  if (!io::is_folder(folder)) return;
  std::set<std::string_view> written;
  for (const Array& array : arrays) written.insert(array.file);
  std::error_code failure;
  for (fs::directory_iterator at(folder, failure), end; !failure && at != end; at.increment(failure)) {
    const std::string name = at->path().filename().string();
    if (name.ends_with(graph::kNpyExtension) && !name.starts_with('.') && !written.contains(name))
      throw Error(ErrorCode::usage, {.file = at->path().string()},
                  "is an array of another model; write to another folder");
  }
  if (failure) throw system_error(folder, "list the folder", failure.value());
}

}  // namespace

Layout npy_layout(const graph::MetaGraph& graph, const ExportOptions& options, const std::string& out) {
  const std::uint64_t unit = array_unit(options);
  std::vector<Slot> slots = array_slots(graph, options);
  Layout layout;
  layout.notes = packing_notes(graph, slots, options);
  std::vector<Array> arrays = arrays_of(std::move(slots));
  refuse_others(out, arrays);
  layout.result.format = "npy";
  for (Array& array : arrays) {
    LayoutFile file;
    file.path = (fs::path(out) / array.file).string();
    file.header = npy_header(array.slot, unit);
    array.slot.offset = file.header.size();
    file.bytes = array.slot.offset + array.slot.bytes;
    const graph::FileId id{static_cast<std::uint32_t>(layout.files.size())};
    layout.result.files.push_back({file.path, file.bytes});
    add_result(layout.result, id, array.slot);
    file.slots.push_back(std::move(array.slot));
    layout.files.push_back(std::move(file));
  }
  add_logical(graph, layout.result);
  return layout;
}

// --- npz (numpy 2.x: numpy/lib/_format_impl.py): a zip archive of .npy members, stored.
// Members are padded so that the numbers are aligned in the file.

namespace {

constexpr std::uint64_t kDefaultAlignment = 64;

// Throws Error{unsupported} for names that numpy would read as another: its zip reader ends them at a NUL,
// and numpy takes "x.npy" for the array "x".
void check_npz_name(const graph::Name& name, const std::set<std::string_view>& names) {
  const auto refuse = [&](std::string_view why) {
    throw Error(ErrorCode::unsupported, {.tensor = name}, why);
  };
  check_name(name);
  const std::string_view text = name.view();
  if (text.size() + graph::kNpyExtension.size() > ZipLayout::kMostName)
    refuse(fmt::format("its name has {} bytes, npz holds at most {}", text.size(),
                       ZipLayout::kMostName - graph::kNpyExtension.size()));
  if (text.ends_with(graph::kNpyExtension) &&
      names.contains(text.substr(0, text.size() - graph::kNpyExtension.size())))
    refuse("numpy takes its name for that of the tensor without .npy, which is there too");
}

}  // namespace

bool npz_supports(graph::DType dtype) { return !graph::dtype_info(dtype).npy.empty(); }

bool npz_carries(const graph::MetaGraph&, const graph::MetaEntry&) { return false; }

Layout npz_layout(const graph::MetaGraph& graph, const ExportOptions& options, const std::string& out) {
  ZipLayout zip(zip_alignment(options, kDefaultAlignment));
  std::vector<Slot> slots = array_slots(graph, options);
  std::vector<graph::Note> notes = packing_notes(graph, slots, options);
  std::set<std::string_view> names;
  for (const Slot& slot : slots) names.insert(slot.name.view());
  for (const Slot& slot : slots) check_npz_name(slot.name, names);
  for (Slot& slot : slots) {
    const std::string member = slot.name.str().append(graph::kNpyExtension);
    std::vector<std::byte> header = npy_header(slot, kNpyUnit);
    zip.add(member, std::move(header), std::move(slot));
  }
  Layout layout = zip.layout(graph, "npz", out);
  layout.notes = std::move(notes);
  return layout;
}

}  // namespace loadline::exporters
