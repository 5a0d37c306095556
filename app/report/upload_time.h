// The time that an upload should have taken beside the time that it took.
#pragma once

#include "core/load/request/rates.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace loadline::report {

struct UploadTime {
  double measured = 0;           // seconds
  double projected = 0;          // with the files as they lay: in the page cache, or on the disk
  double from_disk = 0;          // projected, as if the page cache held nothing
  std::uint64_t file_bytes = 0;  // of the model
  bool packs = false;            // weights on the device, which is not projected
  bool by_measured_rates = false;
  std::optional<std::uint64_t> cached_bytes = {};  // of these, read from the page cache; absent: not known
};
// Whether an upload to `device` is projected by rates that were measured, and not by assumed ones.
bool measured_for(const std::optional<MeasuredRates>& rates, std::string_view device);
// `report`: gpu::UploadReport, of which builds without Vulkan know nothing.
template <typename Report>
UploadTime upload_time(const Report& report, const std::optional<MeasuredRates>& rates) {
  return {report.seconds,
          report.expected_seconds,
          report.projected_seconds,
          report.file_bytes,
          report.packs,
          measured_for(rates, report.device),
          report.cached_bytes};
}

// "85.2 ms projected, 66.9 ms measured (-21.5 %)." Without the difference if rates were assumed, or if the
// device packed.
std::string upload_time_text(const UploadTime& time);
// Sentences on the projected time of an upload to `device`: what the page cache held, and the rates.
std::string upload_rates_text(const UploadTime& time, const std::optional<MeasuredRates>& rates,
                              std::string_view device);

}  // namespace loadline::report
