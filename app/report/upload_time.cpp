// Words for two times and the rates behind one of them.
#include "app/report/upload_time.h"

#include "app/report/error_percent.h"
#include "core/base/text.h"

#include <fmt/format.h>

namespace loadline::report {
namespace {

std::string cache_text(const UploadTime& time) {
  if (time.cached_bytes == 0) return "The files come from the disk.";
  const bool all = time.cached_bytes >= time.file_bytes;
  return fmt::format(
      "The page cache held {}; from the disk {} are projected.",
      all ? "the files"
          : fmt::format("{} of {}", format_bytes(time.cached_bytes), format_bytes(time.file_bytes)),
      format_seconds(time.from_disk));
}

}  // namespace

std::string upload_time_text(const UploadTime& time) {
  return fmt::format("{} projected, {} measured ({:+.1f} %).", format_seconds(time.projected),
                     format_seconds(time.measured), error_percent(time.projected, time.measured));
}

std::string upload_rates_text(const UploadTime& time, const std::optional<MeasuredRates>& rates,
                              std::string_view device) {
  std::string text = cache_text(time) + " " + rates_line(rates);
  if (!rates)
    text += " `loadline devices --measure` measures this machine's.";
  else if (!rates->device.empty() && rates->device != device)
    text += fmt::format(" The device's rates are those of {}.", safe_display(rates->device, 60));
  return text;
}

}  // namespace loadline::report
