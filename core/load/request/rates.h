// The rates of a CostModel as measured on a machine, and the file that stores them.
//
//   {"measured": "2025-03-01T12:00Z", "device": "...",    the device may be left out, and so may any rate:
//    "disk_read": 3.1e9, "disk_write": 1.2e9, "memory_copy": 8.2e9, "link": 2.4e10, "pageable_link": 6.1e9,
//    "device_copy": 2.0e11, "host_pages": 3.2e9, "staging_pages": 2.1e9, "device_pages": 9.0e10,
//    "seek_seconds": 8e-05,                                bytes per second; seconds
//    "queues": {"1 only copies": 2.4e10},                  the link on families of the device's queues
//    "how": {"disk_read": "..."}}                          for people
#pragma once

#include "core/plan/run.h"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace loadline::load {

struct RateRow {
  std::string_view key;
  std::string_view title;
  double plan::CostModel::*member;
  bool of_device = false;  // can only be measured on a device
  double least = 0;        // limits for values in a file
  double most = 0;
};
std::span<const RateRow> rate_rows();

struct MeasuredRates {
  std::string measured = {};  // when; empty: all rates are assumed
  std::string device = {};    // that its rates belong to, as safe_display() shows it
  std::map<std::string, double, std::less<>> values = {};    // by RateRow::key
  std::map<std::string, std::string, std::less<>> how = {};  // how each was measured; by RateRow::key
  // The rate of the link on the device's families of queues, of devices with several. Keys: gpu::LinkRates.
  std::map<std::string, double, std::less<>> queues = {};

  // Replaces the rates of `costs` that were measured.
  plan::CostModel costs(plan::CostModel costs = {}) const;
};

// "Times by rates measured on ...", or the same for assumed rates.
std::string rates_line(const std::optional<MeasuredRates>& rates);

// Throws Error{malformed | limit} naming `path`, line, column and key. A rate must be positive and within the
// limits of its RateRow.
MeasuredRates parse_rates(std::string_view json, const std::string& path);
// Reads the same from a file of at most 1 MiB. Also throws Error{io}.
MeasuredRates read_rates(const std::string& path);
// JSON that parse_rates() reads back.
std::string rates_text(const MeasuredRates& rates);

}  // namespace loadline::load
