// Targets, remains, the source, room and buffers, in this order.
#include "exporters/writer/forecast_2.h"

#include "core/base/error.h"
#include "core/io/system_memory.h"
#include "exporters/writer/consume.h"
#include "exporters/writer/work_folder.h"

#include <algorithm>
#include <filesystem>
#include <thread>

namespace loadline {
namespace {

PipelineSizes buffers_for(const Layout& layout, const MetaGraph& source, const WriteOptions& options) {
  const bool computes = std::ranges::any_of(layout.files, [](const LayoutFile& file) {
    return std::ranges::any_of(file.slots,
                               [](const Slot& slot) { return !copied_tensor(slot.recipe).has_value(); });
  });
  const bool gathers =
      std::ranges::any_of(source.tensors, [](const Tensor& tensor) { return !tensor.strides.empty(); });
  constexpr unsigned kMostThreads = 8;
  const unsigned threads = options.threads != 0
                               ? options.threads
                               : std::clamp(std::thread::hardware_concurrency(), 1u, kMostThreads);
  return share_budget(options.memory_budget, threads, computes, gathers);
}

}  // namespace

WriteForecast forecast_write(const Layout& layout, const MetaGraph& source, const WriteOptions& options) {
  if (options.consume && options.share)
    throw Error(ErrorCode::usage, "a source that several processes share cannot be consumed");
  WriteForecast forecast;
  forecast.buffers = buffers_for(layout, source, options);
  constexpr std::uint64_t kThreadMemory = 1 << 20;  // stacks and what the pipeline itself takes
  forecast.memory_bytes =
      peak_resident_bytes() + forecast.buffers.bytes() + (forecast.buffers.threads + 2) * kThreadMemory;
  for (const LayoutFile& file : layout.files) {
    for (const Slot& slot : file.slots) forecast.bytes_read += recipe_source_bytes(source, slot.recipe);
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
  if (continues && remains.publishing) return forecast;  // only renames are left

  forecast.output = check_output(layout, source, options.overwrite);
  if (options.consume) check_consumable(source);
  const std::uint64_t total = total_bytes(layout);
  const std::uint64_t done = continues ? remains.written : 0;
  forecast.bytes_written = total - std::min(total, done);
  forecast.disk_bytes = total;
  if (options.consume) forecast.disk_bytes = consumed_room(layout, source);
  if (options.sparse) forecast.disk_bytes = 0;
  // what remains have is there already, or becomes free
  const std::uint64_t have = allocated_bytes(remains.path);
  forecast.disk_bytes -= std::min(forecast.disk_bytes, have);
  check_room(layout, forecast.disk_bytes);
  return forecast;
}

}  // namespace loadline
