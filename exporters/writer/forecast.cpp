// Checks of targets and room, the forecast of bytes, disk and memory.
#include "exporters/writer/forecast.h"

#include "core/base/error.h"
#include "core/base/tasks.h"
#include "core/base/text.h"
#include "core/graph/names/file_names.h"
#include "core/io/system_memory.h"
#include "core/io/unfinished.h"
#include "exporters/writer/consume.h"
#include "exporters/writer/work_folder.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <filesystem>
#include <string>

#include <unistd.h>

namespace loadline::exporters {

// --- Targets, the files of another model beside them, permissions and room.

namespace {

namespace fs = std::filesystem;

// No target, and no file to be removed, may be a file of the source model, not even through links: its
// weights, and whatever else lies in its folder, such as a tokenizer. Other weights there may be of an
// earlier conversion.
void refuse_input(const graph::MetaGraph& source, const fs::path& target) {
  std::error_code failure;
  const auto folder_of = [](const fs::path& file) {
    return file.has_parent_path() ? file.parent_path() : fs::path(".");
  };
  const std::string name = target.filename().string();
  const bool weights = graph::is_weight_file(name) && !name.ends_with(".json");
  for (const graph::ModelFile& input : source.files)
    if (fs::equivalent(target, input.path, failure) ||
        (!weights && fs::equivalent(folder_of(target), folder_of(input.path), failure)))
      throw Error(ErrorCode::usage, {.file = target.string()},
                  "is a file of the model being read; write elsewhere");
}

// In a folder that is still to be made, no system call refuses it before everything is written.
void check_file_name(const fs::path& target) {
  for (const fs::path& part : target)
    if (const std::size_t bytes = part.native().size(); bytes > NAME_MAX)
      throw Error(ErrorCode::usage, {.file = target.string()}, "a name of {} bytes, file systems hold {}",
                  bytes, NAME_MAX);
}

void check_targets(const Layout& layout, const graph::MetaGraph& source, const WriteOptions& options) {
  for (const LayoutFile& file : layout.files) {
    std::error_code failure;
    const fs::path target(file.path);
    check_file_name(target);
    const fs::file_status there = fs::symlink_status(target, failure);
    if (there.type() == fs::file_type::none) throw system_error(file.path, "write", failure.value());
    if (!fs::exists(there)) continue;
    refuse_input(source, target);
    for (const std::string& input : options.other_inputs)
      if (fs::equivalent(target, input, failure))
        throw Error(ErrorCode::usage, {.file = file.path}, "is read by this conversion; write elsewhere");
    if (fs::is_directory(target, failure)) throw Error(ErrorCode::usage, {.file = file.path}, "is a folder");
    if (!options.overwrite)
      throw Error(ErrorCode::usage, {.file = file.path}, "exists").with({"force", "on"});
  }
}

// Weight files in the output folder that this layout does not write.
std::vector<fs::path> find_superseded(const Layout& layout, const graph::MetaGraph& source, bool overwrite) {
  std::vector<fs::path> superseded;
  std::error_code failure;
  if (layout.folder.empty() || !io::is_folder(layout.folder)) return superseded;
  for (fs::directory_iterator at(layout.folder, failure), end; !failure && at != end; at.increment(failure)) {
    const fs::path path = at->path();
    const std::string name = path.filename().string();
    const bool written = std::ranges::any_of(
        layout.files, [&](const LayoutFile& file) { return fs::path(file.path) == path; });
    if (written) continue;
    // opening the folder would find that index before the new model
    if (name.ends_with(graph::kHfIndexSuffix) && !graph::is_hf_weight_file(name))
      throw Error(ErrorCode::usage, {.file = path.string()}, "is another model's index; write elsewhere");
    if (!graph::is_hf_weight_file(name)) continue;
    refuse_input(source, path);
    std::error_code ignored;
    if (at->is_directory(ignored)) throw Error(ErrorCode::usage, {.file = path.string()}, "is a folder");
    superseded.push_back(path);
  }
  if (failure) throw system_error(layout.folder, "list the folder", failure.value());
  if (!superseded.empty() && !overwrite)
    throw Error(ErrorCode::usage, {.file = superseded.front().string()},
                "belongs to another model in the output folder")
        .with({"force", "on"});
  return superseded;
}

}  // namespace

std::uint64_t total_bytes(const Layout& layout) {
  std::uint64_t total = 0;
  for (const LayoutFile& file : layout.files) total += file.bytes;  // exporters keep the sum below 2^63
  return total;
}

OutputCheck check_output(const Layout& layout, const graph::MetaGraph& source, const WriteOptions& options) {
  OutputCheck check;
  check_targets(layout, source, options);
  check.superseded = find_superseded(layout, source, options.overwrite);
  if (layout.files.empty()) return check;
  check.disk = io::disk_space(layout.files.front().path);
  if (check.disk && ::access(check.disk->folder.c_str(), W_OK | X_OK) != 0)
    throw system_error(check.disk->folder, "write to the folder", errno);
  return check;
}

void check_room(const Layout& layout, std::uint64_t needed) {
  if (layout.files.empty()) return;
  const std::string& first = layout.files.front().path;
  const auto disk = io::disk_space(first);
  if (disk && needed > disk->available)
    throw Error(ErrorCode::io, {.file = layout.folder.empty() ? first : layout.folder},
                "needs {} ({} bytes) in all, the disk of '{}' has {} free ({} bytes)", format_bytes(needed),
                needed, safe_display(disk->folder, 100), format_bytes(disk->available), disk->available);
}

// --- Targets, remains, the source, room and buffers, in this order.

namespace {

PipelineSizes buffers_for(const Layout& layout, const graph::MetaGraph& source, const WriteOptions& options) {
  const bool computes = std::ranges::any_of(layout.files, [](const LayoutFile& file) {
    return std::ranges::any_of(
        file.slots, [](const Slot& slot) { return !convert::copied_tensor(slot.recipe).has_value(); });
  });
  const bool gathers = std::ranges::any_of(
      source.tensors, [](const graph::Tensor& tensor) { return !tensor.strides.empty(); });
  constexpr unsigned kMostThreads = 8, kWritersAtOnce = 4;
  const unsigned threads = options.threads != 0
                               ? options.threads
                               : static_cast<unsigned>(std::min<std::size_t>(cores(), kMostThreads));
  // past the page cache the disk has work only while a thread waits for it
  const unsigned writers = options.policy == io::WritePolicy::direct ? kWritersAtOnce : 1;
  return share_budget(options.memory_budget, threads, writers, computes, gathers);
}

}  // namespace

WriteForecast forecast_write(const Layout& layout, const graph::MetaGraph& source,
                             const WriteOptions& options) {
  if (options.consume && options.share)
    throw Error(ErrorCode::usage, "a source that several processes share cannot be consumed");
  WriteForecast forecast;
  forecast.buffers = buffers_for(layout, source, options);
  constexpr std::uint64_t kThreadMemory = 1 << 20;  // stacks and what the pipeline itself takes
  forecast.memory_bytes =
      io::peak_resident_bytes() + forecast.buffers.bytes() + forecast.buffers.shares() * kThreadMemory;
  for (const LayoutFile& file : layout.files) {
    for (const Slot& slot : file.slots)
      forecast.bytes_read += convert::recipe_source_bytes(source, slot.recipe);
    if (!file.copy_of.empty()) forecast.bytes_read += file.bytes;
  }

  const std::string work = WorkFolder::path_of(layout);
  std::optional<WorkRecord> record;
  if (std::filesystem::exists(work)) {
    record = work_record(layout, layout_sources(layout, source));
    check_remains(
        work, *record,
        {.shared = options.share.has_value(), .resume = options.resume, .force = options.overwrite});
  }
  const Remains remains = record ? examine_remains(work) : Remains{};
  const bool continues =
      remains.record && remains.record->identity == record->identity && (options.resume || options.share);
  if (continues && (remains.pending || remains.published)) return forecast;  // only renames are left

  const bool holds = continues && remains.is_only_copy() && remains.list != ConsumedList::lost;
  // it may be long ago that the model was opened
  for (const graph::ModelFile& file : source.files)
    if (!file.path.empty()) io::require_whole(file.path, true);
  forecast.output = check_output(layout, source, options);
  if (options.consume) check_consumable(source, options.consumable_files);
  check_marks(source, source.files.size(), work, holds, options.consume);
  const std::uint64_t total = total_bytes(layout);
  const std::uint64_t done = continues ? remains.written : 0;
  forecast.bytes_written = total - std::min(total, done);
  forecast.disk_bytes = total;
  if (options.consume) forecast.disk_bytes = consumed_room(layout, source, options.consumable_files);
  if (options.sparse) forecast.disk_bytes = 0;
  // what remains have is there already, or becomes free
  const std::uint64_t have = allocated_bytes(remains.path);
  forecast.disk_bytes -= std::min(forecast.disk_bytes, have);
  check_room(layout, forecast.disk_bytes);
  return forecast;
}

}  // namespace loadline::exporters
