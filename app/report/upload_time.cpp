// Words for two times and the rates behind one of them.
#include "app/report/upload_time.h"

#include "app/report/error_percent.h"
#include "core/base/text.h"

#include <fmt/format.h>

namespace loadline::report {
namespace {

std::string cache_text(const UploadTime& time) {
  if (!time.cached_bytes)
    return "How much of the files the page cache holds is not known: projected from the disk.";
  if (*time.cached_bytes == 0) return "The files come from the disk.";
  constexpr double kNearlyAll = 0.999;
  const bool all =
      static_cast<double>(*time.cached_bytes) >= kNearlyAll * static_cast<double>(time.file_bytes);
  const std::string held = all ? "The files were in the page cache"
                               : fmt::format("{} of {} were in the page cache",
                                             format_bytes(*time.cached_bytes), format_bytes(time.file_bytes));
  return fmt::format("{}; from the disk it would be {}.", held, format_seconds(time.from_disk));
}

}  // namespace

bool measured_for(const std::optional<MeasuredRates>& rates, std::string_view device) {
  return rates && rates->values.contains("disk_read") && rates->values.contains("link") &&
         (rates->device.empty() || rates->device == safe_display(device));
}

std::string upload_time_text(const UploadTime& time) {
  std::string text =
      fmt::format("{} projected, {} measured", format_seconds(time.projected), format_seconds(time.measured));
  if (time.by_measured_rates && !time.packs)
    text += fmt::format(" ({:+.1f} %)", error_percent(time.projected, time.measured));
  return text + ".";
}

std::string upload_rates_text(const UploadTime& time, const std::optional<MeasuredRates>& rates,
                              std::string_view device) {
  std::string text =
      cache_text(time) + (time.packs ? " Packing is not projected." : "") + " " + rates_line(rates);
  if (!rates)
    text += " `loadline devices --measure` measures this machine's.";
  else if (!rates->values.contains("host_pages"))
    text += " They do not count new memory: `loadline devices --measure` measures that too.";
  else if (!rates->device.empty() && rates->device != safe_display(device))
    text += fmt::format(" The device's rates are those of {}.", safe_display(rates->device, 60));
  return text;
}

}  // namespace loadline::report
